#include "search/search_record.h"

#include <fstream>

#include <fmt/core.h>

#include <tinygrad/errors.h>

#include "base/build_id.h"
#include "base/cpu.h"
#include "base/disk_cache.h"
#include "base/parse.h"
#include "codegen/opt/parse_opts.h"
#include "uop/graph.h"

namespace tinygrad::search {
namespace {

constexpr uint32_t format = 2;  // of the values, and of how candidates are timed
constexpr std::string_view winners = "beam", verdicts = "beam_trials";

std::string read_cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line;
  return {};
}

const std::string& cpu_model() {
  static const auto& model = *new std::string(read_cpu_model());
  return model;
}

/// The text up to the next line break, which is taken off.
std::string_view take_line(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

}  // namespace

SearchRecord::SearchRecord(const UOp& sink, const Device& device, const Options& options)
    : budget_s_(options.beam_budget_s), ignored_(options.ignore_beam_cache) {
  ContentHasher h;
  h.add(format).add(content_key(sink)).add(device.target().key()).add(cpu_model()).add(uint64_t(cpu_thread_count(options)));
  key_ = h.add(options.code_key()).finish();
  // Another build may number axes in another way, or choose better opts without a search.
  winner_key_ = ContentHasher().add(key_).add(build_id()).finish();
}

bool SearchRecord::accepts(const Winner& w) const { return w.budget_s == 0 || (budget_s_ != 0 && budget_s_ <= w.budget_s); }

std::optional<Winner> SearchRecord::winner() const {
  if (ignored_ || build_id().empty()) return std::nullopt;
  const std::optional<std::string> text = disk_cache().get(winners, winner_key_.to_hex());
  if (!text) return std::nullopt;
  std::string_view rest = *text;
  Winner w;
  if (!parse_value(take_line(rest), w.budget_s)) return std::nullopt;
  if (!accepts(w) || !parse_value(take_line(rest), w.heuristic)) return std::nullopt;
  try {
    w.opts = codegen::parse_opts(take_line(rest));
  } catch (const ValueError&) {
    return std::nullopt;
  }
  return w;
}

void SearchRecord::set_winner(const Winner& w) const {
  disk_cache().put(winners, winner_key_.to_hex(), fmt::format("{}\n{:d}\n{}\n", w.budget_s, int(w.heuristic), codegen::to_string(w.opts)));
}

std::optional<Verdict> SearchRecord::verdict(const ContentKey& code) const {
  if (ignored_) return std::nullopt;
  const std::optional<std::string> text = disk_cache().get(verdicts, key_.to_hex() + code.to_hex());
  if (!text) return std::nullopt;
  std::string_view rest = *text;
  Verdict v;
  if (!parse_value(take_line(rest), v.seconds)) return std::nullopt;
  v.bad = take_line(rest);
  return v;
}

void SearchRecord::set_verdict(const ContentKey& code, const Verdict& v) const {
  disk_cache().put(verdicts, key_.to_hex() + code.to_hex(), fmt::format("{}\n{}\n", v.seconds, v.bad));
}

}  // namespace tinygrad::search
