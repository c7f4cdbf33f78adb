#include "base/options.h"

#include <fmt/core.h>
#include <tinygrad/context.h>
#include <tinygrad/errors.h>

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "base/parse.h"

namespace tinygrad {
namespace {

// The rules of options.def.
constexpr OptionRule any() { return {}; }
constexpr OptionRule any_text() { return {.any_text_is_true = true}; }
constexpr OptionRule range(double low, double high) { return {.low = low, .high = high}; }
constexpr OptionRule one_of(std::string_view choices) { return {.choices = choices}; }

template <class T>
constexpr std::string_view type_name() {
  if constexpr (std::is_same_v<T, bool>) return "flag";
  if constexpr (std::is_integral_v<T>) return "integer";
  if constexpr (std::is_floating_point_v<T>) return "number";
  return "text";
}

bool is_choice(std::string_view choices, std::string_view value) {
  while (!choices.empty()) {
    size_t comma = choices.find(", ");
    if (choices.substr(0, comma) == value) return true;
    choices = comma == choices.npos ? std::string_view() : choices.substr(comma + 2);
  }
  return false;
}

std::string expected(std::string_view type, const OptionRule& rule) {
  if (!rule.choices.empty()) return fmt::format("one of {}", rule.choices);
  if (rule.low < rule.high) return fmt::format("{} from {} to {}", type == "integer" ? "an integer" : "a number", rule.low, rule.high);
  if (type == "flag") return "0 or 1";
  return fmt::format("{}", type);
}

[[noreturn]] void refuse(std::string_view name, const auto& value, std::string_view type, const OptionRule& rule) {
  throw ValueError(fmt::format("{}: got '{}', expected {}", name, value, expected(type, rule)));
}

template <class T>
void check(std::string_view name, const T& value, const OptionRule& rule) {
  bool good = true;
  if constexpr (std::is_same_v<T, std::string>) {
    good = rule.choices.empty() || is_choice(rule.choices, value);
  } else if (rule.low < rule.high) {
    good = static_cast<double>(value) >= rule.low && static_cast<double>(value) <= rule.high;
  }
  if (!good) refuse(name, value, type_name<T>(), rule);
}

template <class T>
void read_variable(const char* name, const OptionRule& rule, T& value) {
  const char* text = std::getenv(name);
  if (!text || !*text) return;
  if constexpr (std::is_same_v<T, bool>) {
    if (rule.any_text_is_true) {
      value = true;
      return;
    }
  }
  if (!parse_value(text, value)) refuse(name, text, type_name<T>(), rule);
  check(name, value, rule);
}

/// -1 is the build's own choice.
void resolve(Options& options) {
  if (options.spec == -1) options.spec = default_spec;
}

Options changed(Options options, const ContextArgs& args) {
  if (args.cancel) options.cancel = *args.cancel;
#define TG_OPTION(type, field, name, default_value, rule, ...) \
  if (args.field) {                                            \
    check("Context: " name, *args.field, rule);                \
    options.field = *args.field;                               \
  }
#include <tinygrad/options.def>
#undef TG_OPTION
  resolve(options);
  return options;
}

// The innermost Context of the thread. A plain pointer: no constructor or destructor runs for it.
constinit thread_local Context* innermost = nullptr;

/// Options outside of every Context, and what they were before, which is never freed: somebody may have a reference, and objects of the
/// user die late.
struct OfProcess {
  std::shared_ptr<const Options> options;
  OfProcess* before = nullptr;
};

std::atomic<OfProcess*>& of_process() {
  static std::atomic<OfProcess*> last = new OfProcess{std::make_shared<Options>(Options::from_environment())};
  return last;
}

}  // namespace

Options Options::from_environment() {
  Options options;
#define TG_OPTION(type, field, name, default_value, rule, ...) read_variable(name, rule, options.field);
#include <tinygrad/options.def>
#undef TG_OPTION
  resolve(options);
  return options;
}

ContentKey Options::code_key() const {
  ContentHasher hasher;
#define TG_OPTION(type, field, name, default_value, rule, affects_code, ...) \
  if constexpr (affects_code) hasher.add(std::string_view(name)).add(field);
#include <tinygrad/options.def>
#undef TG_OPTION
  return hasher.finish();
}

const std::shared_ptr<const Options>& Context::pointer() { return innermost ? innermost->options_ : of_process().load()->options; }

const Options& current_options() { return *Context::pointer(); }

Context::Context(const ContextArgs& args) : Context(std::make_shared<const Options>(changed(current_options(), args))) {}

Context::Context(std::shared_ptr<const Options> options) noexcept
    : options_(std::move(options)), previous_(std::exchange(innermost, this)) {}

Context::~Context() { innermost = previous_; }

std::shared_ptr<const Options> Context::current() { return pointer(); }

void Context::set(const ContextArgs& args) {
  auto next = std::make_shared<const Options>(changed(current_options(), args));
  if (*next == current_options()) return;
  if (innermost) {
    innermost->before_.push_back(std::exchange(innermost->options_, std::move(next)));
    return;
  }
  auto* added = new OfProcess{std::move(next), of_process()};
  while (!of_process().compare_exchange_weak(added->before, added)) {}
}

std::span<const OptionInfo> option_table() {
  static constexpr OptionInfo kTable[] = {
#define TG_OPTION(type, field, name, default_value, rule, affects_code, documentation) \
  {#field, name, type_name<type>(), #default_value, rule, affects_code, documentation},
#include <tinygrad/options.def>
#undef TG_OPTION
  };
  return kTable;
}

std::string environment_markdown() {
  std::string text =
      "# Environment variables\n\n"
      "Generated from `include/tinygrad/options.def`; do not edit. After a change there, `TG_UPDATE_DOCS=1 test_base` writes it anew.\n\n"
      "`Context guard{{.debug = 2}};` sets the same options for a scope of one thread: the field is the variable's name in lower\n"
      "case. Flags take 0, 1, true and false; an empty variable counts as unset. Options marked *code* change generated kernels or\n"
      "schedules and are part of every cache key.\n\n"
      "| variable | type | default | allowed | | meaning |\n"
      "| --- | --- | --- | --- | --- | --- |\n";
  for (const OptionInfo& o : option_table()) {
    std::string_view shown = o.default_value == "false" ? "0" : o.default_value == "true" ? "1" : o.default_value;
    if (shown.starts_with('"')) shown = shown.substr(1, shown.size() - 2);
    std::string allowed;
    if (!o.rule.choices.empty()) allowed = o.rule.choices;
    if (o.rule.low < o.rule.high) allowed = fmt::format("{} to {}", o.rule.low, o.rule.high);
    if (o.rule.any_text_is_true) allowed = "any text";
    text += fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", o.variable, o.type, shown.empty() ? "" : fmt::format("`{}`", shown), allowed,
                        o.affects_code ? "code" : "", o.documentation);
  }
  return text;
}

}  // namespace tinygrad
