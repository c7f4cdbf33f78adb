#include "tune/tune.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include <tinygrad/target.h>

#include "common/core_numbers.h"
#include "common/json_line.h"

namespace tinygrad::apps {

void tune(const TuneOptions& o) {
  if (o.forget) return forget_host_core();
  const CpuCore before = host_cpu_target().core, measured = measure_host_core();
  keep_host_core(measured);
  if (o.json) return print_json(core_json(measured));
  fmt::print("{}, measured beside what kernels were chosen by:\n", measured.name.str());
  for (const CoreNumber& n : core_numbers())
    fmt::print("{:<22} {:>8.4g} {:>8.4g}  {}\n", n.name, measured.*n.number, before.*n.number, n.meaning);
  fmt::print("Programs that start from now on choose kernels by them; `tg tune --forget` goes back to those of the processor's kind.\n");
}

}  // namespace tinygrad::apps
