// What differs between versions of torch is chosen when this is compiled.
#pragma once

#include <torch/version.h>

#define HOCKET_TORCH_FROM(major, minor) \
  (TORCH_VERSION_MAJOR > (major) ||     \
   (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))
