// Opens a model file, takes one tensor of it and looks at a byte of each page, as a line of JSON: seconds, and MB that the process grew to.
#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>

#include <tinygrad/formats.h>
#include <tinygrad/tinygrad.h>

using namespace tinygrad;

namespace {

/// The most memory that the process had, in MB.
double peak() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmHWM:" && status >> word) return std::stod(word) * 1.024e-3;
  return 0;
}

uint64_t bytes_read() {
  std::ifstream io("/proc/self/io");
  for (std::string word; io >> word;)
    if (word == "read_bytes:" && io >> word) return std::stoull(word);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return std::fputs("model_files FILE TENSOR\n", stderr), 2;
  Tensor(std::vector<float>{1}).realize();
  const double before = peak();
  const uint64_t read_before = bytes_read();
  const auto start = std::chrono::steady_clock::now();
  const auto file = formats::open(arguments[1]);
  size_t place = 0;
  while (file->tensors().at(place).name != arguments[2]) ++place;
  const Tensor tensor = file->tensor(place).realize();
  const std::shared_ptr<std::byte> memory = tensor.host_memory();
  uint64_t sum = 0;
  for (int64_t at = 0; at < tensor.nbytes(); at += 4096) sum += uint64_t(memory.get()[at]);
  std::printf(R"({"seconds": %.4f, "grown": %.1f, "read": %.1f, "sum": %llu})"
              "\n",
              std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), peak() - before,
              double(bytes_read() - read_before) * 1e-6, static_cast<unsigned long long>(sum));
}
