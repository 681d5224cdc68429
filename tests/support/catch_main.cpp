// Catch2 2 has no library: its main function is compiled here, once. Version 3 brings its own.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
