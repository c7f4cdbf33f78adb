#include "run/prepare.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include <tinygrad/errors.h>
#include <tinygrad/media.h>

namespace tinygrad::apps {

namespace {

bool ends_in(const std::string& path, std::initializer_list<std::string_view> endings) {
  std::string ending = std::filesystem::path(path).extension().string();
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return char(std::tolower(c)); });
  return std::ranges::find(endings, ending) != endings.end();
}

/// How the pixels of a row or column are made of those before: a triangle as wide as the distance of pixels in the smaller picture.
Tensor weights_of(int64_t from, int64_t to) {
  std::vector<float> weights(size_t(from * to));
  const double scale = double(from) / double(to), reach = std::max(scale, 1.0);
  for (int64_t o = 0; o < to; ++o) {
    const double middle = (double(o) + 0.5) * scale;
    const auto weight = [&](int64_t i) { return std::max(0.0, 1 - std::fabs(double(i) + 0.5 - middle) / reach); };
    const int64_t begin = std::max<int64_t>(0, int64_t(middle - reach)), end = std::min(from, int64_t(middle + reach) + 1);
    double sum = 0;
    for (int64_t i = begin; i < end; ++i) sum += weight(i);
    for (int64_t i = begin; i < end; ++i) weights[size_t(o * from + i)] = float(weight(i) / sum);
  }
  return Tensor(weights, {to, from}, {.device = "CPU"});
}

/// (channels, height, width), float32.
Tensor resized(const Tensor& x, int64_t height, int64_t width) {
  Tensor out = x;
  if (x.shape()[1] != height) out = weights_of(x.shape()[1], height).matmul(out);
  if (x.shape()[2] != width) out = out.matmul(weights_of(x.shape()[2], width).transpose(0, 1));
  return out;
}

/// Which axes of an input are what; -1 where there is none.
struct Axes {
  int channel = -1, height = -1, width = -1;
};

Axes axes_of(const Port& port, const Sizes& sizes, const std::string& layout) {
  const int rank = int(sizes.size());
  if (rank == 2) return {-1, 0, 1};
  if (rank != 3 && rank != 4)
    throw ShapeError(fmt::format("run: the input '{}' is {}, which is no picture: expects 2, 3 or 4 axes", port.name, port.type));
  const auto is_channels = [](int64_t size) { return size == 1 || size == 3 || size == 4; };
  const bool is_last =
      layout == "nhwc" || (layout == "auto" && !is_channels(sizes[size_t(rank - 3)]) && is_channels(sizes[size_t(rank - 1)]));
  const Axes out = is_last ? Axes{rank - 1, rank - 3, rank - 2} : Axes{rank - 3, rank - 2, rank - 1};
  if (const int64_t size = sizes[size_t(out.channel)]; size >= 0 && !is_channels(size))
    throw ShapeError(
        fmt::format("run: the input '{}' is {}, which is no picture: the axis of channels has {}", port.name, port.type, size));
  return out;
}

std::vector<float> per_channel(const std::vector<double>& values, int64_t channels, const char* option) {
  if (values.size() != 1 && int64_t(values.size()) != channels)
    throw ValueError(fmt::format("run: {} has {} numbers, expects 1 or {}", option, values.size(), channels));
  std::vector<float> out;
  for (int64_t c = 0; c < channels; ++c) out.push_back(float(values[values.size() == 1 ? 0 : size_t(c)]));
  return out;
}

/// What is done to the bytes of pixels, and in words.
Prepared normalized(const Tensor& x, const Port& port, bool is_nchw, const PictureOptions& o) {
  const int64_t channels = x.shape()[0];
  const bool is_asked = o.scale || !o.mean.empty() || !o.std.empty();
  if (!is_float(*port.dtype)) {
    if (is_asked)
      throw ValueError(fmt::format("run: --scale, --mean and --std are of floats, and the input '{}' is {}", port.name, port.type));
    return {x.round().clip(0, 255).cast(*port.dtype), {}, "values from 0 to 255"};
  }
  constexpr std::array<double, 3> mean{0.485, 0.456, 0.406}, std{0.229, 0.224, 0.225};  // of ImageNet
  std::vector<double> less = o.mean, by = o.std;
  const bool is_usual = !is_asked && is_nchw && channels == 3;
  if (is_usual) {
    less.assign(mean.begin(), mean.end());
    by.assign(std.begin(), std.end());
    if (o.bgr) std::ranges::reverse(less), std::ranges::reverse(by);
  }
  const double scale = o.scale.value_or(1.0 / 255);
  Prepared out{x * scale, {}, o.scale ? fmt::format("times {:.6g}", scale) : "divided by 255"};
  if (!less.empty()) {
    out.tensor = out.tensor - Tensor(per_channel(less, channels, "--mean"), {channels, 1, 1}, {.device = "CPU"});
    out.values += fmt::format(", less {:.6g}", fmt::join(less, ","));
  }
  if (!by.empty()) {
    out.tensor = out.tensor / Tensor(per_channel(by, channels, "--std"), {channels, 1, 1}, {.device = "CPU"});
    out.values += fmt::format(", divided by {:.6g}", fmt::join(by, ","));
  }
  if (is_usual) out.values += " (ImageNet's; --scale, --mean and --std choose others)";
  out.tensor = out.tensor.cast(*port.dtype);
  return out;
}

}  // namespace

bool is_picture(const std::string& path) {
  return ends_in(path, {".png", ".jpg", ".jpeg", ".webp", ".bmp", ".ppm", ".pgm", ".pbm", ".pnm", ".tif", ".tiff", ".jp2", ".j2k"});
}
bool is_sound(const std::string& path) { return ends_in(path, {".wav", ".flac", ".ogg", ".opus", ".mp3", ".aiff", ".aif", ".au"}); }

Prepared prepare_picture(const std::string& path, const Port& port, const Sizes& sizes, const PictureOptions& options) {
  const DType dtype = *port.dtype;
  if (!is_float(dtype) && dtype != DType::uint8 && (sizes.size() < 3 || dtype == DType::bool_ || dtype == DType::int8))
    throw DTypeError(fmt::format("run: the input '{}' is {}, which is no picture", port.name, port.type));
  const Axes axes = axes_of(port, sizes, options.layout);
  const int64_t declared = axes.channel < 0 ? 1 : sizes[size_t(axes.channel)], channels = declared < 0 ? 3 : declared;
  using media::Pixels;
  const Pixels pixels = channels == 1 ? Pixels::grey : channels == 4 ? Pixels::rgba : options.bgr ? Pixels::bgr : Pixels::rgb;
  const Tensor picture = media::load_image(path, {.pixels = pixels});
  const int64_t from_height = picture.shape()[0], from_width = picture.shape()[1];
  const auto wanted = [&](int axis, int64_t own) { return sizes[size_t(axis)] < 0 ? own : sizes[size_t(axis)]; };
  const int64_t height = wanted(axes.height, from_height), width = wanted(axes.width, from_width);
  std::string how = fmt::format("{}, {} x {}", path, from_width, from_height);

  Tensor x = picture.permute({2, 0, 1});
  if (options.fit == "crop") {  // the largest part in the middle that has the proportions
    const double scale = std::min(double(from_height) / double(height), double(from_width) / double(width));
    const int64_t h = std::clamp<int64_t>(std::llround(double(height) * scale), 1, from_height);
    const int64_t w = std::clamp<int64_t>(std::llround(double(width) * scale), 1, from_width);
    const int64_t top = (from_height - h) / 2, left = (from_width - w) / 2;
    if (h != from_height || w != from_width) how += fmt::format(", its middle {} x {}", w, h);
    x = x.shrink({{0, channels}, {top, top + h}, {left, left + w}});
  }
  if (x.shape()[1] != height || x.shape()[2] != width) how += fmt::format(", resized to {} x {}", width, height);
  const bool is_nchw = axes.channel >= 0 && axes.channel == axes.height - 1;
  Prepared out = normalized(resized(x.cast(DType::float32), height, width), port, is_nchw, options);
  out.how = how;
  if (options.bgr) out.values = "BGR, " + out.values;
  if (!is_nchw) out.tensor = axes.channel < 0 ? out.tensor.squeeze(0) : out.tensor.permute({1, 2, 0});
  if (sizes.size() == 4) {
    Sizes all = out.tensor.shape();
    all.insert(all.begin(), sizes[0] < 0 ? 1 : sizes[0]);
    out.tensor = out.tensor.unsqueeze(0).expand(all);
  }
  return out;
}

Prepared prepare_sound(const std::string& path, const Port& port, const Sizes& sizes) {
  const size_t rank = sizes.size();
  if (rank < 1 || rank > 3 || !is_float(*port.dtype))
    throw ShapeError(fmt::format("run: the input '{}' is {}, which is no sound: expects floats with 1 to 3 axes", port.name, port.type));
  const media::Sound sound = media::load_audio(path);
  Tensor x = sound.samples;
  const int64_t channels = x.shape()[0], frames = x.shape()[1];
  std::string how = fmt::format("{}, {} channel{}, {} frames, {} Hz", path, channels, channels == 1 ? "" : "s", frames, sound.rate);
  const int64_t wanted_channels = rank == 1 ? 1 : sizes[rank - 2] == channels ? channels : 1;
  if (channels != wanted_channels) {
    x = x.mean(0).unsqueeze(0);
    how += ", their mean";
  }
  if (const int64_t wanted = sizes[rank - 1]; wanted >= 0 && wanted != frames) {
    x = wanted < frames ? x.shrink({{0, wanted_channels}, {0, wanted}}) : x.pad({{0, 0}, {0, wanted - frames}});
    how += wanted < frames ? fmt::format(", the first {}", wanted) : fmt::format(", zeros up to {}", wanted);
  }
  if (rank == 1) x = x.squeeze(0);
  if (rank == 3) x = x.unsqueeze(0);
  return {x.cast(*port.dtype), how, "from -1 to 1"};
}

}  // namespace tinygrad::apps
