#include "convert/convert.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <utility>

#include <tinygrad/formats.h>
#include <tinygrad/progress.h>

#include "common/json_line.h"
#include "common/size_text.h"

namespace tinygrad::apps {

std::vector<std::string> quantized_formats() {
  std::vector<std::string> out;
  for (int i = 0; i <= int(formats::BlockFormat::Q2_0); ++i)
    if (const auto format = formats::BlockFormat(i); formats::can_quantize(format)) out.emplace_back(formats::layout_of(format).name);
  return out;
}

void convert(const ConvertArgs& args) {
  const std::unique_ptr<formats::Reader> file = formats::open(args.from);
  ProgressBar bar({.description = "convert", .total = int64_t(file->tensors().size()), .unit = "tensors"});
  formats::ConvertOptions options;
  if (!args.quantize.empty()) options.quantize = formats::block_format_named(args.quantize);
  options.progress = [&, is_first = true](const formats::TensorInfo&) mutable {
    if (!std::exchange(is_first, false)) bar.update();
  };
  const formats::ConvertReport report = formats::convert(*file, args.to, options);
  if (report.tensors > 0) bar.update();
  bar.close();
  if (args.json) {
    print_json(
        {{"from", args.from}, {"to", args.to}, {"tensors", report.tensors}, {"quantized", report.quantized}, {"bytes", report.bytes}});
    return;
  }
  fmt::print("{}: {} tensors, {}", args.to, report.tensors, size_text(report.bytes));
  if (options.quantize) fmt::print(", {} of them {}", report.quantized, args.quantize);
  fmt::print("\n");
}

}  // namespace tinygrad::apps
