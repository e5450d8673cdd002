# SPDX-License-Identifier: BSL-1.0
# Read by ../CMakeLists.txt (the CMakeLists.txt here is the consumer's): hone in projects of others, on this machine.
find_program(HONE_TEST_PKG_CONFIG NAMES pkg-config pkgconf)
set(xsimd_installed "")
if(xsimd_DIR)
    set(xsimd_installed "${xsimd_DIR}")
endif()
FetchContent_GetProperties(xsimd SOURCE_DIR xsimd_fetched)
# Numbers are those of public reports.
set(report_of_find_package "B116 ")
set(report_of_add_subdirectory "B116 ")
set(report_of_FetchContent "B116 ")
set(report_of_pkg-config "B116 ")
set(report_of_majors "B118 ")
function(hone_consumer_test name)
    add_test(NAME "consumer: ${report_of_${name}}${name}" ${ARGN})
    set_tests_properties("consumer: ${report_of_${name}}${name}" PROPERTIES LABELS compile TIMEOUT ${HONE_TEST_TIMEOUT}
        SKIP_REGULAR_EXPRESSION "^skipped")
endfunction()

foreach(way find_package add_subdirectory FetchContent pkg-config majors leak)
    if(CMAKE_CROSSCOMPILING)
        hone_consumer_test(${way} COMMAND "${CMAKE_COMMAND}" -E echo "skipped: the native run covers it")
    elseif(way STREQUAL pkg-config AND NOT HONE_TEST_PKG_CONFIG)
        hone_consumer_test(${way} COMMAND "${CMAKE_COMMAND}" -E echo "skipped: there is no pkg-config")
    else()
        set(qemu "")
        if(CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64 AND HONE_TEST_QEMU_X86_64)
            set(qemu "${HONE_TEST_QEMU_X86_64}")
        endif()
        hone_consumer_test(${way} COMMAND "${CMAKE_COMMAND}" -DWAY=${way} "-DSOURCE=${PROJECT_SOURCE_DIR}"
            "-DFOLDER=${CMAKE_CURRENT_BINARY_DIR}/consumers/${way}" "-DGENERATOR=${CMAKE_GENERATOR}"
            "-DCOMPILER=${CMAKE_CXX_COMPILER}" "-DXSIMD_DIR=${xsimd_installed}" "-DXSIMD_SOURCE=${xsimd_fetched}"
            "-DPKG_CONFIG=${HONE_TEST_PKG_CONFIG}" "-DQEMU=${qemu}"
            -P "${CMAKE_CURRENT_LIST_DIR}/consume.cmake")
    endif()
endforeach()
# The check of the flags sees a flag.
if(NOT CMAKE_CROSSCOMPILING)
    set_tests_properties("consumer: leak" PROPERTIES PASS_REGULAR_EXPRESSION "the consumer is compiled with -O1:")
endif()

foreach(compiler IN LISTS compilers)
    get_filename_component(kind "${compiler}" NAME)
    if(CMAKE_CROSSCOMPILING OR NOT CMAKE_NM OR NOT HONE_TEST_BASH)
        hone_consumer_test("B109 two versions, ${kind}" COMMAND "${CMAKE_COMMAND}"
            -E echo "skipped: needs bash and nm, natively")
    else()
        hone_consumer_test("B109 two versions, ${kind}" COMMAND "${HONE_TEST_BASH}"
            "${CMAKE_CURRENT_LIST_DIR}/two_versions.sh"
            "${CMAKE_CURRENT_BINARY_DIR}/consumers/two-versions-${kind}" "${CMAKE_NM}" "${compiler}" ${include_flags})
    endif()
endforeach()

# Units of several flags, and assembly that names no register the system keeps.
foreach(compiler IN LISTS compilers)
    get_filename_component(kind "${compiler}" NAME)
    if(NOT HONE_TEST_BASH)
        hone_consumer_test("B67 B113 flags, ${kind}" COMMAND "${CMAKE_COMMAND}" -E echo "skipped: needs bash")
    else()
        hone_consumer_test("B67 B113 flags, ${kind}" COMMAND "${HONE_TEST_BASH}" "${CMAKE_CURRENT_LIST_DIR}/flags.sh"
            "${CMAKE_CURRENT_BINARY_DIR}/consumers/flags-${kind}" "${compiler}" ${include_flags})
        list(JOIN HONE_TEST_EMULATOR " " emulator)
        set_tests_properties("consumer: B67 B113 flags, ${kind}" PROPERTIES
            ENVIRONMENT "HONE_TEST_EMULATOR=${emulator}")
    endif()
endforeach()
if(HONE_TEST_BASH AND CMAKE_OBJDUMP)
    hone_consumer_test("B70 B112 reserved registers" COMMAND "${HONE_TEST_BASH}"
        "${CMAKE_CURRENT_LIST_DIR}/reserved_registers.sh" "${CMAKE_CURRENT_BINARY_DIR}/consumers/reserved-registers"
        "${CMAKE_OBJDUMP}" "${CMAKE_CXX_COMPILER}" ${include_flags})
endif()
