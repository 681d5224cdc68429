// Joins a world by MPI, waits for all others, and ends: what `hocket-bench start` is measured
// against.
#include <mpi.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Barrier(MPI_COMM_WORLD);
  return MPI_Finalize();
}
