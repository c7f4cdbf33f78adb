// Programs whose kernels are full of index arithmetic: for each one line of JSON with its kernels, the divisions and comparisons of
// integers that are left in their linear programs (and in loops without a loop inside), and seconds of a jitted step. Links the library's
// internals.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <vector>

#include <tinygrad/tinygrad.h>

#include "engine/run.h"
#include "schedule/schedule.h"
#include "tensor/cell.h"
#include "tensor/realize.h"

using namespace tinygrad;

namespace {

using Tensors = std::vector<Tensor>;

struct Workload {
  const char* name;
  std::vector<Sizes> inputs;
  std::function<Tensor(const Tensors&)> step;
};

Tensor windows(const Tensor& x) {  // (n, c, h, w) to (n, c, h, w, 3, 3), padded
  return x.pad({{0, 0}, {0, 0}, {1, 1}, {1, 1}}).unfold(2, 3, 1).unfold(3, 3, 1);
}

const Sizes image{8, 32, 32, 32}, filters{64, 32, 3, 3};

std::vector<Workload> workloads() {
  const auto strided = [](const Tensors& t) { return t[0].conv2d(t[1], {}, {.stride = {2}, .padding = {1}}); };
  return {
      {"convolution", {image, filters}, [](const Tensors& t) { return t[0].conv2d(t[1], {}, {.padding = {1}}); }},
      {"strided convolution", {image, filters}, strided},
      {"its gradient to the input",
       {image, filters, {8, 64, 16, 16}},
       [=](const Tensors& t) { return strided(t).gradient({t[0]}, t[2])[0]; }},
      {"its gradient to the weights",
       {image, filters, {8, 64, 16, 16}},
       [=](const Tensors& t) { return strided(t).gradient({t[1]}, t[2])[0]; }},
      {"transposed convolution",
       {{8, 32, 16, 16}, {32, 32, 3, 3}},
       [](const Tensors& t) { return t[0].conv_transpose2d(t[1], {}, {.stride = {2}, .padding = {1}}); }},
      {"patches",
       {{8, 3, 128, 128}},
       [](const Tensors& t) { return t[0].reshape({8, 3, 8, 16, 8, 16}).permute({0, 2, 4, 1, 3, 5}).reshape({8, 64, 768}).contiguous(); }},
      {"windows as a matrix",
       {{4, 16, 32, 32}},
       [](const Tensors& t) { return windows(t[0]).permute({0, 2, 3, 1, 4, 5}).reshape({4096, 144}).contiguous(); }},
      {"transpose of a reshape", {{960, 640}}, [](const Tensors& t) { return t[0].T().reshape({480, 1280}).T().contiguous(); }},
      {"padded max pool",
       {{8, 32, 64, 64}},
       [](const Tensors& t) { return t[0].max_pool2d({.kernel_size = {3, 3}, .stride = {2}, .padding = {1}}); }},
      {"its gradient",
       {{8, 32, 64, 64}, {8, 32, 32, 32}},
       [](const Tensors& t) { return t[0].max_pool2d({.kernel_size = {3, 3}, .stride = {2}, .padding = {1}}).gradient({t[0]}, t[1])[0]; }},
      {"roll", {{1000, 1200}}, [](const Tensors& t) { return t[0].roll({300, 500}, {0, 1}).contiguous(); }},
      {"strided slices",
       {{200, 120, 100}},
       [](const Tensors& t) { return t[0][{Slice{.step = -2}, Slice{.start = 1, .step = 3}, Slice{.step = -1}}].contiguous(); }},
      {"concatenation",
       {{500, 300}, {700, 300}, {100, 300}},
       [](const Tensors& t) { return Tensor::cat({t[0], t[1], t[2]}).flip({0, 1}).contiguous(); }},
  };
}

struct Counts {
  size_t kernels = 0;
  int divisions = 0, innermost_divisions = 0, comparisons = 0, innermost_comparisons = 0;
};

bool on_integers(const UOp& u) { return u.src_count() == 2 && is_int(u.src(0).dtype()); }

/// Shifts and masks are divisions by powers of two.
bool is_division(const UOp& u) {
  switch (u.op()) {
    case Op::FLOORDIV:
    case Op::FLOORMOD:
    case Op::CDIV:
    case Op::CMOD:
    case Op::SHR:
    case Op::AND: return on_integers(u);
    default: return false;
  }
}

void count(const UOp& linear, Counts& out) {
  struct Loop {
    bool has_loop = false;
    int divisions = 0, comparisons = 0;
  };
  std::vector<Loop> open;
  for (const UOp& u : linear.src()) {
    if (u.is(Op::RANGE)) {
      if (!open.empty()) open.back().has_loop = true;
      open.push_back({});
    } else if (u.is(Op::END)) {
      if (!open.back().has_loop) out.innermost_divisions += open.back().divisions, out.innermost_comparisons += open.back().comparisons;
      open.pop_back();
    }
    const bool division = is_division(u), comparison = u.in(Group::comparison) && on_integers(u);
    out.divisions += division, out.comparisons += comparison;
    if (!open.empty()) open.back().divisions += division, open.back().comparisons += comparison;
  }
}

Counts counts_of(const Tensor& result) {
  const std::vector<detail::CellPtr> cells{detail::cell_of(result).shared_from_this()};
  const schedule::Schedule s = schedule::make_schedule(tensor::effects_of(cells), engine::target_of, {.cache = false});
  engine::RenderReport report = engine::render_schedule(s, current_options());
  Counts out{.kernels = report.kernels};
  for (const RenderedProgram& p : report.programs) count(p.linear, out);
  return out;
}

double seconds_of(const Workload& work, const Tensors& inputs) {
  const auto step = jit([&](const Tensors& t) { return work.step(t).realize(); });
  for (int i = 0; i < 3; ++i) step(inputs);
  std::vector<double> seconds;
  for (double all = 0; seconds.size() < 5 || (all < 0.3 && seconds.size() < 1000); all += seconds.back()) {
    const auto start = std::chrono::steady_clock::now();
    step(inputs);
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::ranges::nth_element(seconds, seconds.begin() + std::ptrdiff_t(seconds.size() / 2));
  return seconds[seconds.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  for (const Workload& work : workloads()) {
    if (argc > 1 && std::strcmp(argv[1], work.name) != 0) continue;
    Tensors inputs;
    for (const Sizes& shape : work.inputs) inputs.push_back(Tensor::randn(shape).realize());
    const Counts c = counts_of(work.step(inputs));
    std::printf(
        R"({"name": "%s", "kernels": %zu, "divisions": %d, "innermost_divisions": %d, "comparisons": %d, "innermost_comparisons": %d, )"
        R"("seconds": %.6f})"
        "\n",
        work.name, c.kernels, c.divisions, c.innermost_divisions, c.comparisons, c.innermost_comparisons, seconds_of(work, inputs));
  }
}
