# SPDX-License-Identifier: BSL-1.0
# Each dependency is looked for without a version (the version files of xsimd and Eigen refuse other majors) and
# compared here. With HONE_FETCH_DEPS what is missing is downloaded, pinned by hash; nothing is downloaded otherwise.
include(FetchContent)

function(hone_missing name package)
    message(FATAL_ERROR "hone: ${name} was not found. Install it (Debian, Ubuntu: apt-get install ${package}), or "
        "let CMake download it with -DHONE_FETCH_DEPS=ON${ARGN}")
endfunction()

function(hone_check_version name version least)
    if(version AND version VERSION_LESS least)
        message(FATAL_ERROR "hone needs ${name} ${least} or newer; found ${version}")
    endif()
    message(STATUS "hone: ${name} ${version}")
endfunction()

# The source only, without the CMake project in it: for headers, whose projects bring options and install rules along.
macro(hone_fetch_headers name url hash)
    FetchContent_Declare(${name} URL ${url} URL_HASH SHA256=${hash} SOURCE_SUBDIR headers-only
        DOWNLOAD_EXTRACT_TIMESTAMP FALSE)
    FetchContent_MakeAvailable(${name})
endmacro()

# Headers of a fetched project are no more ours to warn about than installed ones. FetchContent's SYSTEM: CMake 3.25.
function(hone_as_system target)
    get_target_property(dirs ${target} INTERFACE_INCLUDE_DIRECTORIES)
    set_property(TARGET ${target} APPEND PROPERTY INTERFACE_SYSTEM_INCLUDE_DIRECTORIES ${dirs})
endfunction()

function(hone_need_xsimd)
    if(NOT TARGET xsimd::xsimd AND NOT TARGET xsimd)
        find_package(xsimd CONFIG QUIET GLOBAL)
        # Debian 12 keeps its package file, though it is only about headers, in a folder of the architecture, where a cross
        # build does not look.
        if(NOT xsimd_FOUND AND CMAKE_CROSSCOMPILING AND NOT CMAKE_DISABLE_FIND_PACKAGE_xsimd)
            find_path(HONE_XSIMD_INCLUDE_DIR xsimd/xsimd.hpp)
        endif()
        if(HONE_XSIMD_INCLUDE_DIR)
            set(xsimd_VERSION "")
            foreach(part MAJOR MINOR PATCH)
                file(STRINGS "${HONE_XSIMD_INCLUDE_DIR}/xsimd/config/xsimd_config.hpp" line
                    REGEX "define XSIMD_VERSION_${part} ")
                string(REGEX REPLACE "^.* " "" line "${line}")
                list(APPEND xsimd_VERSION "${line}")
            endforeach()
            list(JOIN xsimd_VERSION "." xsimd_VERSION)
            add_library(xsimd::xsimd INTERFACE IMPORTED GLOBAL)
            target_include_directories(xsimd::xsimd INTERFACE "${HONE_XSIMD_INCLUDE_DIR}")
        elseif(NOT xsimd_FOUND)
            if(NOT HONE_FETCH_DEPS)
                hone_missing(xsimd libxsimd-dev)
            endif()
            set(xsimd_VERSION 13.2.0)
            hone_fetch_headers(xsimd https://github.com/xtensor-stack/xsimd/archive/13.2.0.tar.gz
                edd8cd3d548c185adc70321c53c36df41abe64c1fe2c67bc6d93c3ecda82447a)
            add_library(xsimd::xsimd INTERFACE IMPORTED GLOBAL)
            target_include_directories(xsimd::xsimd INTERFACE "${xsimd_SOURCE_DIR}/include")
        endif()
    endif()
    include("${CMAKE_CURRENT_FUNCTION_LIST_DIR}/xsimdTarget.cmake")
    hone_check_version(xsimd "${xsimd_VERSION}" 8.1)
endfunction()

function(hone_need_eigen)
    if(TARGET Eigen3::Eigen)
        return()
    endif()
    find_package(Eigen3 CONFIG QUIET GLOBAL)
    if(NOT TARGET Eigen3::Eigen)
        if(NOT HONE_FETCH_DEPS)
            hone_missing(Eigen libeigen3-dev
                ", or leave tests and benches out with -DHONE_BUILD_TESTS=OFF -DHONE_BUILD_BENCHMARKS=OFF")
        endif()
        set(Eigen3_VERSION 3.4.0)
        hone_fetch_headers(eigen https://gitlab.com/libeigen/eigen/-/archive/3.4.0/eigen-3.4.0.tar.bz2
            b4c198460eba6f28d34894e3a5710998818515104d6e74e5cc331ce31e46e626)
        add_library(Eigen3::Eigen INTERFACE IMPORTED GLOBAL)
        target_include_directories(Eigen3::Eigen INTERFACE "${eigen_SOURCE_DIR}")
    endif()
    hone_check_version(Eigen "${Eigen3_VERSION}" 3.4)
endfunction()

# Gives hone_catch: what a test executable links to get the test macros and main(). For Catch2 2 main() is compiled here:
# the installed library holds it for the machine that builds, not for the one that cross tests run on.
function(hone_need_catch)
    if(TARGET hone_catch)
        return()
    endif()
    find_package(Catch2 CONFIG QUIET GLOBAL)
    # Catch2 3 is a library: one built for another architecture links with nothing here.
    if(Catch2_FOUND AND CMAKE_CROSSCOMPILING AND Catch2_VERSION VERSION_GREATER_EQUAL 3)
        include(CheckCXXSourceCompiles)
        set(CMAKE_REQUIRED_LIBRARIES Catch2::Catch2WithMain)
        check_cxx_source_compiles("#include <catch2/catch_test_macros.hpp>
            TEST_CASE(\"links\") { CHECK(true); }" HONE_CATCH_LINKS)
        if(NOT HONE_CATCH_LINKS)
            message(FATAL_ERROR "hone: Catch2 ${Catch2_VERSION} in ${Catch2_DIR} is not built for "
                "${CMAKE_SYSTEM_PROCESSOR}; give -DHONE_FETCH_DEPS=ON -DCMAKE_DISABLE_FIND_PACKAGE_Catch2=ON")
        endif()
    endif()
    if(NOT Catch2_FOUND)
        if(NOT HONE_FETCH_DEPS)
            hone_missing(Catch2 catch2 ", or leave the tests out with -DHONE_BUILD_TESTS=OFF")
        endif()
        set(Catch2_VERSION 3.7.1)
        FetchContent_Declare(Catch2 URL https://github.com/catchorg/Catch2/archive/v3.7.1.tar.gz
            URL_HASH SHA256=c991b247a1a0d7bb9c39aa35faf0fe9e19764213f28ffba3109388e62ee0269c
            DOWNLOAD_EXTRACT_TIMESTAMP FALSE)
        set(CATCH_INSTALL_DOCS OFF)
        set(CATCH_INSTALL_EXTRAS OFF)
        FetchContent_MakeAvailable(Catch2)
        hone_as_system(Catch2)
        set(Catch2_CMAKE "${Catch2_SOURCE_DIR}/extras")
    else()
        set(Catch2_CMAKE "${Catch2_DIR}")
    endif()
    hone_check_version(Catch2 "${Catch2_VERSION}" 2.13)
    set(hone_catch_module "${Catch2_CMAKE}/Catch.cmake" CACHE INTERNAL "")
    if(Catch2_VERSION VERSION_LESS 3)
        file(CONFIGURE OUTPUT catch_main.cpp CONTENT "#define CATCH_CONFIG_MAIN\n#include <catch2/catch.hpp>\n")
        add_library(hone_catch STATIC "${CMAKE_CURRENT_BINARY_DIR}/catch_main.cpp")
        target_compile_features(hone_catch PUBLIC cxx_std_20)
        target_link_libraries(hone_catch PUBLIC Catch2::Catch2)
    else()
        add_library(hone_catch INTERFACE)
        target_link_libraries(hone_catch INTERFACE Catch2::Catch2WithMain)
    endif()
endfunction()

function(hone_need_benchmark)
    if(TARGET benchmark::benchmark)
        return()
    endif()
    find_package(benchmark CONFIG QUIET GLOBAL)
    if(NOT benchmark_FOUND)
        if(NOT HONE_FETCH_DEPS)
            hone_missing("Google Benchmark" libbenchmark-dev
                ", or leave the benches out with -DHONE_BUILD_BENCHMARKS=OFF")
        endif()
        set(benchmark_VERSION 1.9.1)
        FetchContent_Declare(benchmark URL https://github.com/google/benchmark/archive/refs/tags/v1.9.1.tar.gz
            URL_HASH SHA256=32131c08ee31eeff2c8968d7e874f3cb648034377dfc32a4c377fa8796d84981
            DOWNLOAD_EXTRACT_TIMESTAMP FALSE)
        set(BENCHMARK_ENABLE_TESTING OFF)
        set(BENCHMARK_ENABLE_INSTALL OFF)
        set(BENCHMARK_ENABLE_GTEST_TESTS OFF)
        set(BENCHMARK_ENABLE_WERROR OFF)
        FetchContent_MakeAvailable(benchmark)
        hone_as_system(benchmark)
    endif()
    hone_check_version("Google Benchmark" "${benchmark_VERSION}" 1.7)
endfunction()
