/* How the programs in C say what is wrong, and count it. */
#pragma once

#include <stdio.h>

#include "hocket/hocket.h"

static int failures = 0;

static void expect(int is_right, const char* what) {
  if (is_right) return;
  ++failures;
  printf("WRONG: %s (last error: %s)\n", what, hocket_last_error());
}
