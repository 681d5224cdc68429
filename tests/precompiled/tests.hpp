// As library.hpp, for tests.
#include "support/catch.hpp"
#include "tools/precompiled/library.hpp"
