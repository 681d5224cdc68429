#pragma once

/* Marks what a shared libhocket exports. Everything else stays hidden. */
#ifdef __cplusplus
#define HOCKET_API [[gnu::visibility("default")]]
#else
#define HOCKET_API __attribute__((visibility("default")))
#endif
