# SPDX-License-Identifier: BSL-1.0
# Installed xsimd calls its target `xsimd`, a build tree of 14 or later `xsimd::xsimd`: hone links the latter. Only the
# include directories are taken over: Debian's xsimd 8.1 also names a library `xtl` there, which does not exist (xtl is
# headers). The version is compared here and not by find_package: xsimd's version file refuses all other majors.
if(TARGET xsimd AND NOT TARGET xsimd::xsimd)
    add_library(xsimd::xsimd INTERFACE IMPORTED GLOBAL)
    target_include_directories(xsimd::xsimd INTERFACE $<TARGET_PROPERTY:xsimd,INTERFACE_INCLUDE_DIRECTORIES>)
endif()
if(DEFINED xsimd_VERSION AND xsimd_VERSION VERSION_LESS 8.1)
    message(FATAL_ERROR "hone needs xsimd 8.1 or newer; found ${xsimd_VERSION}")
endif()
