#include "bench/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <tinygrad/errors.h>

#include "common/canvas.h"

namespace tinygrad::apps {

namespace {

constexpr int64_t width = 960, height = 640, left = 90, right = 30, top = 60, bottom = 70;

/// Decades to pixels.
struct Axes {
  int x_low, x_high, y_low, y_high;  ///< powers of ten at the edges

  double x(double value) const { return left + (std::log10(value) - x_low) / (x_high - x_low) * double(width - left - right); }
  double y(double value) const { return height - bottom - (std::log10(value) - y_low) / (y_high - y_low) * double(height - top - bottom); }
};

int decade_below(double value) { return int(std::floor(std::log10(value))); }

Axes axes_for(const ChartPoint& p, const Roofline& limits) {
  const double intensity = p.flops / p.bytes, ridge = limits.gflops / limits.gb_s, reached = p.flops / p.seconds * 1e-9;
  const int x_low = decade_below(std::min(intensity, ridge) / 2), x_high = decade_below(std::max(intensity, ridge) * 4) + 1;
  const double lowest = std::min(reached, limits.gb_s * std::pow(10, x_low));
  return {.x_low = x_low, .x_high = x_high, .y_low = decade_below(lowest / 2), .y_high = decade_below(limits.gflops * 1.5) + 1};
}

void draw_grid(Canvas& canvas, const Axes& axes) {
  for (int d = axes.x_low; d <= axes.x_high; ++d) {
    const double at = axes.x(std::pow(10, d));
    const std::string label = fmt::format("{:g}", std::pow(10, d));
    canvas.line(at, top, at, height - bottom, colours::faint);
    canvas.text(int64_t(at) - Canvas::text_width(label) / 2, height - bottom + 12, label, colours::plain);
  }
  for (int d = axes.y_low; d <= axes.y_high; ++d) {
    const double at = axes.y(std::pow(10, d));
    const std::string label = fmt::format("{:g}", std::pow(10, d));
    canvas.line(left, at, width - right, at, colours::faint);
    canvas.text(left - 12 - Canvas::text_width(label), int64_t(at) - 7, label, colours::plain);
  }
  canvas.text(left, top - 22, "GFLOP/s", colours::plain);
  const std::string label = "operations a byte";
  canvas.text(width - right - Canvas::text_width(label), height - 30, label, colours::plain);
}

void draw_limits(Canvas& canvas, const Axes& axes, const Roofline& limits) {
  const double ridge = limits.gflops / limits.gb_s, first = std::pow(10, axes.x_low), last = std::pow(10, axes.x_high);
  canvas.line(axes.x(first), axes.y(first * limits.gb_s), axes.x(ridge), axes.y(limits.gflops), colours::white);
  canvas.line(axes.x(ridge), axes.y(limits.gflops), axes.x(last), axes.y(limits.gflops), colours::white);
  const std::string arithmetic = fmt::format("{:.1f} GFLOP/s", limits.gflops), memory = fmt::format("{:.1f} GB/s", limits.gb_s);
  canvas.text(width - right - Canvas::text_width(arithmetic), int64_t(axes.y(limits.gflops)) - 26, arithmetic, colours::white);
  canvas.text(int64_t(axes.x(first)) + 50, int64_t(axes.y(first * limits.gb_s)) - 25, memory, colours::white);
}

void draw_point(Canvas& canvas, const Axes& axes, const ChartPoint& p, const Roofline& limits) {
  const double x = axes.x(p.flops / p.bytes), reached = p.flops / p.seconds * 1e-9,
               possible = p.flops / limits.seconds(p.flops, p.bytes) * 1e-9;
  canvas.line(x, axes.y(reached), x, axes.y(possible), colours::green);
  canvas.fill(int64_t(x) - 6, int64_t(axes.y(reached)) - 6, 12, 12, colours::green);
  const std::string label = fmt::format("{:.1f} GFLOP/s, {:.0f} %", reached, 100 * reached / possible);
  const int64_t text_x = std::min(int64_t(x) + 14, width - Canvas::text_width(label) - 6);
  canvas.text(text_x, int64_t(axes.y(reached)) + 12, label, colours::green);
}

}  // namespace

void write_roofline(const std::string& path, const ChartPoint& p, const Roofline& limits) {
  if (!(p.flops > 0)) throw ValueError(fmt::format("bench: --roofline cannot show {}, which does no arithmetic", p.title));
  Canvas canvas(width, height);
  const Axes axes = axes_for(p, limits);
  draw_grid(canvas, axes);
  draw_limits(canvas, axes, limits);
  draw_point(canvas, axes, p, limits);
  canvas.text(left, 12, fmt::format("{}, {} threads", p.title, limits.threads), colours::white);
  canvas.write(path);
}

}  // namespace tinygrad::apps
