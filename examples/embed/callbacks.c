/* A framework that takes its network as two functions, in the manner of LightGBM (whose functions
 * have a few more arguments): it reduces blocks of different sizes, which lie anywhere in its
 * memory, with a reducer of its own for elements of 12 bytes; and it gathers such blocks. In C,
 * over Hocket's C ABI.
 *
 *   gcc -std=c11 callbacks.c $(pkg-config --cflags --libs hocket) -o callbacks
 *   hocket run -n 3 -- ./callbacks
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hocket/hocket.h"

/* ---- The framework ---- */

/* output[i] = output[i] op input[i], for size bytes of elements of element_size bytes. */
typedef void (*ReduceFunction)(const char* input, char* output, int element_size, int size);

/* Block r is size[r] bytes from input + start[r] on, and goes to rank r, reduced. */
typedef void (*ReduceScatterFunction)(char* input, int element_size, const int* start,
                                      const int* size, int ranks, char* output,
                                      ReduceFunction reducer);
/* Rank r's block goes to output + start[r] on every rank. */
typedef void (*AllGatherFunction)(const char* input, const int* start, const int* size, int ranks,
                                  char* output);

/* A bin of a histogram, packed: 12 bytes. */
enum { bin_size = 12 };

static void add_bins(const char* input, char* output, int element_size, int size) {
  for (int at = 0; at < size; at += element_size) {
    double gradients[2];
    int32_t counts[2];
    memcpy(&gradients[0], output + at, 8);
    memcpy(&gradients[1], input + at, 8);
    memcpy(&counts[0], output + at + 8, 4);
    memcpy(&counts[1], input + at + 8, 4);
    gradients[0] += gradients[1];
    counts[0] += counts[1];
    memcpy(output + at, &gradients[0], 8);
    memcpy(output + at + 8, &counts[0], 4);
  }
}

/* ---- The bridge ---- */

static hocket_comm* comm;

static void check(hocket_status status) {
  if (status == HOCKET_OK) return;
  fprintf(stderr, "%s\n", hocket_last_error());
  exit(1);
}

/* Hocket gives three addresses, the framework's reducer takes two. */
static void call_reducer(void* context, void* out, const void* a, const void* b, size_t count,
                         hocket_dtype dtype) {
  ReduceFunction reducer = NULL;
  memcpy(&reducer, context, sizeof reducer);
  const size_t element_size = hocket_dtype_size(dtype);
  const void* other = b;
  if (out == b) {
    other = a;
  } else if (out != a) {
    memcpy(out, a, count * element_size);
  }
  reducer(other, out, (int)element_size, (int)(count * element_size));
}

/* Blocks as pieces of so many elements. The caller frees both lists. */
static hocket_piece* pieces_of(char* memory, int element_size, const int* start, const int* size,
                               int ranks, size_t** counts) {
  hocket_piece* pieces = calloc((size_t)ranks, sizeof *pieces);
  *counts = calloc((size_t)ranks, sizeof **counts);
  if (pieces == NULL || *counts == NULL) exit(1);
  for (int rank = 0; rank < ranks; ++rank) {
    (*counts)[rank] = (size_t)(size[rank] / element_size);
    pieces[rank] = (hocket_piece){.data = memory + start[rank], .count = (*counts)[rank]};
  }
  return pieces;
}

static void reduce_scatter(char* input, int element_size, const int* start, const int* size,
                           int ranks, char* output, ReduceFunction reducer) {
  size_t* counts = NULL;
  hocket_piece* blocks = pieces_of(input, element_size, start, size, ranks, &counts);
  const hocket_collective collective = {.struct_size = sizeof collective,
                                        .kind = HOCKET_KIND_REDUCE_SCATTER,
                                        .dtype = HOCKET_BYTES(element_size), /* up to 4096 */
                                        .out = output,
                                        .counts = counts,
                                        .op = HOCKET_OP_CUSTOM,
                                        .custom = call_reducer,
                                        .custom_context = &reducer,
                                        .in_pieces = blocks,
                                        .in_piece_count = (size_t)ranks};
  check(hocket_run(comm, &collective));
  free(blocks);
  free(counts);
}

static void all_gather(const char* input, const int* start, const int* size, int ranks,
                       char* output) {
  size_t* counts = NULL;
  hocket_piece* blocks = pieces_of(output, 1, start, size, ranks, &counts);
  const hocket_collective collective = {.struct_size = sizeof collective,
                                        .kind = HOCKET_KIND_ALL_GATHER,
                                        .dtype = HOCKET_U8,
                                        .in = input,
                                        .counts = counts,
                                        .out_pieces = blocks,
                                        .out_piece_count = (size_t)ranks};
  check(hocket_run(comm, &collective));
  free(blocks);
  free(counts);
}

/* ---- A step of the framework: bins are summed by their owners, and all get all of them ---- */

enum { ranks_max = 64 };

static int owned_bins(int rank) { return 3 + rank; }

static void step(ReduceScatterFunction scatter, AllGatherFunction gather, int rank, int ranks) {
  int start[ranks_max];
  int size[ranks_max];
  int end = 0;
  for (int i = 0; i < ranks; ++i) {
    start[i] = end;
    size[i] = owned_bins(i) * bin_size;
    end += size[i] + 4; /* a hole, which nobody touches */
  }
  char* histogram = malloc((size_t)end);
  char* sums = malloc((size_t)end);
  char* own = malloc((size_t)size[rank]);
  if (histogram == NULL || sums == NULL || own == NULL) exit(1);
  memset(histogram, 0x55, (size_t)end);
  memset(sums, 0x55, (size_t)end);
  const double gradient = 0.5;
  const int32_t count = rank + 1;
  for (int i = 0; i < ranks; ++i) {
    for (int at = 0; at < size[i]; at += bin_size) {
      memcpy(histogram + start[i] + at, &gradient, 8);
      memcpy(histogram + start[i] + at + 8, &count, 4);
    }
  }
  scatter(histogram, bin_size, start, size, ranks, own, add_bins);
  gather(own, start, size, ranks, sums);

  double all_gradients = 0;
  int32_t all_counts = 0;
  for (int i = 0; i < ranks; ++i) {
    for (int at = 0; at < size[i]; at += bin_size) {
      double each = 0;
      int32_t each_count = 0;
      memcpy(&each, sums + start[i] + at, 8);
      memcpy(&each_count, sums + start[i] + at + 8, 4);
      all_gradients += each;
      all_counts += each_count;
    }
    if (sums[start[i] + size[i]] != 0x55) {
      fprintf(stderr, "a hole was written to\n");
      exit(1);
    }
  }
  printf("rank %d of %d: gradients %g, counts %d\n", rank, ranks, all_gradients, (int)all_counts);
  free(histogram);
  free(sums);
  free(own);
}

int main(void) {
  check(hocket_join(NULL, &comm));
  if (hocket_comm_size(comm) > ranks_max) {
    fprintf(stderr, "at most %d ranks\n", ranks_max);
    return 1;
  }
  step(reduce_scatter, all_gather, hocket_comm_rank(comm), hocket_comm_size(comm));
  hocket_comm_free(comm);
  return 0;
}
