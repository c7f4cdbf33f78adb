// An all-reduce of 64 MiB between ranks, in turns with OpenMPI's: rank 0 writes one JSON object. Started by mpirun.
#include <dlfcn.h>

#include <cstdio>
#include <string>
#include <vector>

#include <tinygrad/tinygrad.h>

#include "times.h"

using namespace tinygrad;

int main() {
  constexpr int rounds = 15;
  constexpr int64_t n = (int64_t(64) << 20) / 4;
  std::vector<std::string> devices;
  for (int r = 0; r < world_size(); ++r) devices.push_back("CPU@" + std::to_string(r));
  const Tensor terms = Tensor::rand({world_size(), n}).shard(devices, 0).contiguous().realize();
  const auto sum = jit([](const Tensor& x) { return x.sum(0).realize(); });
  for (int i = 0; i < 3; ++i) sum(terms);

  using Handle = void*;
  void* library = dlopen("libmpi.so.40", RTLD_NOW);
  if (!library) return std::fprintf(stderr, "shards: no OpenMPI\n"), 1;
  const auto allreduce = reinterpret_cast<int (*)(const void*, void*, int, Handle, Handle, Handle)>(dlsym(library, "MPI_Allreduce"));
  const auto barrier = reinterpret_cast<int (*)(Handle)>(dlsym(library, "MPI_Barrier"));
  const Handle world = dlsym(library, "ompi_mpi_comm_world"), floats = dlsym(library, "ompi_mpi_float"),
               add = dlsym(library, "ompi_mpi_op_sum");
  std::vector<float> from(size_t(n), 1.0f), to(size_t(n), 0.0f);
  const auto theirs = [&] { allreduce(from.data(), to.data(), int(n), floats, add, world); };
  for (int i = 0; i < 3; ++i) theirs();

  std::vector<double> own, ratios;
  for (int r = 0; r < rounds; ++r) {
    barrier(world);
    const double a = seconds_of([&] { sum(terms); });
    barrier(world);
    const double b = seconds_of(theirs);
    own.push_back(a);
    ratios.push_back(b / a);
  }
  if (rank() == 0)
    std::printf(R"({"ranks": %d, "allreduce_ms": %.2f, "of_mpi": %.3f})"
                "\n",
                world_size(), median(own) * 1e3, median(ratios));
}
