#pragma once
/// jit: a function of tensors that is captured once and then replayed for almost nothing.

#include <array>
#include <concepts>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <tinygrad/export.h>
#include <tinygrad/tensor.h>
#include <tinygrad/variable.h>

namespace tinygrad {

namespace jitted {
class CapturedCall;
}

struct JitOptions {
  /// Checking mode: every call runs the function, and one that differs from what was captured throws JitError naming what changed.
  bool check = false;
  /// Kernels that do not depend on the arguments, on random numbers or on what the function assigns to run once, when a call is captured.
  /// What is assigned later to the tensors that they read is not seen.
  bool prune = false;
  /// How many calls, of different shapes, dtypes and devices, are kept captured; the least recently used one is dropped for another.
  size_t captures = 16;
  /// The first call is captured already, for a function that is known to do the same in each call.
  bool at_once = false;
};

namespace detail {

/// The tensors and variables in arguments, in the order of visiting, and what is around them as text: "Tensor, [Tensor, Tensor], 3".
struct JitArguments {
  std::vector<Tensor> tensors;
  std::vector<Variable> variables;
  std::string layout;
};

/// The tensors of a result; `skeleton` is the result without them.
struct JitResults {
  std::vector<Tensor> tensors;
  std::shared_ptr<const void> skeleton;
};

/// A jitted function but for its types.
class TINYGRAD_EXPORT JitCore {
 public:
  /// Runs the function on these tensors.
  using Body = std::function<JitResults(std::span<const Tensor> arguments)>;

  explicit JitCore(const JitOptions& options);
  ~JitCore();
  /// The results of a replay; nothing if `body` ran, which then has its own. `result_type` tells skeletons of different types apart.
  std::optional<JitResults> call(const JitArguments& arguments, const void* result_type, const Body& body);
  void reset();
  void free_intermediates();
  void save(const std::string& path) const;
  /// The layout of the arguments and the skeleton of the results of what save() writes.
  std::pair<std::string, std::shared_ptr<const void>> saved_form() const;
  bool captured() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

template <class T, template <class...> class Template>
inline constexpr bool is_instance = false;
template <template <class...> class Template, class... A>
inline constexpr bool is_instance<Template<A...>, Template> = true;
template <class T>
inline constexpr bool is_array = false;
template <class T, size_t n>
inline constexpr bool is_array<std::array<T, n>> = true;
template <class T>
inline constexpr bool is_string_map = false;
template <class T, class... More>
inline constexpr bool is_string_map<std::map<std::string, T, More...>> = true;

template <class T>
inline constexpr bool is_tuple = is_instance<T, std::tuple> || is_instance<T, std::pair>;
template <class T>
inline constexpr bool is_list = is_instance<T, std::vector> || is_array<T>;
template <class T>
inline constexpr bool is_constant = std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, std::string>;

/// Turns into the type of any field.
struct AnyField {
  template <class T>
  operator T() const;
};
template <class T, class... Fields>
consteval size_t field_count() {
  if constexpr (requires { T{Fields{}..., AnyField{}}; })
    return field_count<T, Fields..., AnyField>();
  else
    return sizeof...(Fields);
}
/// A plain struct, its fields visited in their order. One without fields, or with more than eight, is no such.
template <class T>
consteval bool is_struct() {
  if constexpr (std::is_aggregate_v<T> && !std::is_array_v<T> && !is_array<T> && !std::is_polymorphic_v<T>)
    return field_count<T>() >= 1 && field_count<T>() <= 8;
  else
    return false;
}

/// The fields as a tuple of references.
template <class T>
auto fields_of(T& x) {
  constexpr size_t n = field_count<std::remove_const_t<T>>();
  if constexpr (n == 1) {
    auto& [a] = x;
    return std::tie(a);
  } else if constexpr (n == 2) {
    auto& [a, b] = x;
    return std::tie(a, b);
  } else if constexpr (n == 3) {
    auto& [a, b, c] = x;
    return std::tie(a, b, c);
  } else if constexpr (n == 4) {
    auto& [a, b, c, d] = x;
    return std::tie(a, b, c, d);
  } else if constexpr (n == 5) {
    auto& [a, b, c, d, e] = x;
    return std::tie(a, b, c, d, e);
  } else if constexpr (n == 6) {
    auto& [a, b, c, d, e, f] = x;
    return std::tie(a, b, c, d, e, f);
  } else if constexpr (n == 7) {
    auto& [a, b, c, d, e, f, g] = x;
    return std::tie(a, b, c, d, e, f, g);
  } else {
    auto& [a, b, c, d, e, f, g, h] = x;
    return std::tie(a, b, c, d, e, f, g, h);
  }
}

template <class T>
consteval bool holds_tensors();
template <class T, size_t... i>
consteval bool elements_hold_tensors(std::index_sequence<i...>) {
  return (holds_tensors<std::remove_reference_t<std::tuple_element_t<i, T>>>() && ...);
}
/// Tensors, and containers of nothing but tensors: what a jitted function may return.
template <class T>
consteval bool holds_tensors() {
  if constexpr (std::is_same_v<T, Tensor>)
    return true;
  else if constexpr (is_list<T> || is_instance<T, std::optional>)
    return holds_tensors<typename T::value_type>();
  else if constexpr (is_string_map<T>)
    return holds_tensors<typename T::mapped_type>();
  else if constexpr (is_tuple<T>)
    return elements_hold_tensors<T>(std::make_index_sequence<std::tuple_size_v<T>>());
  else if constexpr (!is_constant<T> && !std::is_same_v<T, Variable> && !std::is_pointer_v<T> && is_struct<T>())
    return elements_hold_tensors<decltype(fields_of(std::declval<T&>()))>(std::make_index_sequence<field_count<T>()>());
  else
    return false;
}

/// Calls the visitor for everything in an argument or a result.
template <class T, class V>
void visit_leaves(T& x, V& visitor) {
  using D = std::remove_const_t<T>;
  if constexpr (std::is_same_v<D, Tensor>) {
    visitor.tensor(x);
  } else if constexpr (std::is_same_v<D, Variable>) {
    visitor.variable(x);
  } else if constexpr (is_constant<D>) {
    visitor.constant(x);
  } else if constexpr (is_list<D>) {
    visitor.open("[");
    for (auto& element : x) visit_leaves(element, visitor);
    visitor.close("]");
  } else if constexpr (is_string_map<D>) {
    visitor.open("{");
    for (auto& [key, element] : x) {
      visitor.key(key);
      visit_leaves(element, visitor);
    }
    visitor.close("}");
  } else if constexpr (is_tuple<D>) {
    visitor.open("(");
    std::apply([&](auto&... elements) { (visit_leaves(elements, visitor), ...); }, x);
    visitor.close(")");
  } else if constexpr (is_instance<D, std::optional>) {
    visitor.open(x ? "optional(" : "nullopt(");
    if (x) visit_leaves(*x, visitor);
    visitor.close(")");
  } else if constexpr (is_struct<D>()) {
    visitor.open("{");
    std::apply([&](auto&... fields) { (visit_leaves(fields, visitor), ...); }, fields_of(x));
    visitor.close("}");
  } else {
    static_assert(std::is_pointer_v<D>, "jit: containers hold tensors, numbers, strings, pointers, Variables and plain structs of such");
    visitor.object(x);
  }
}

/// Notes what it visits.
class TINYGRAD_EXPORT JitCollector {
 public:
  explicit JitCollector(JitArguments& out) : out_(out) {}
  void tensor(const Tensor& t);
  void variable(const Variable& v);
  template <class T>
  void constant(const T& value) {
    if constexpr (std::is_same_v<T, std::string>)
      quoted(value);
    else if constexpr (std::is_enum_v<T>)
      text(std::to_string(static_cast<long long>(value)));
    else if constexpr (std::is_same_v<T, bool>)
      text(value ? "true" : "false");
    else if constexpr (std::is_floating_point_v<T>)
      number(static_cast<double>(value));
    else
      text(std::to_string(value));
  }
  void object(const void* address);
  void key(const std::string& name);
  void open(std::string_view bracket);
  void close(std::string_view bracket);

 private:
  void text(std::string_view text);
  void quoted(std::string_view text);
  void number(double value);
  void separate();
  JitArguments& out_;
};

/// Puts tensors into what it visits, or none.
class JitFiller {
 public:
  JitFiller() = default;
  explicit JitFiller(std::span<const Tensor> tensors) : tensors_(tensors) {}
  void tensor(Tensor& t) { t = tensors_.empty() ? Tensor() : tensors_[next_++]; }
  template <class T>
  void constant(const T&) {}
  void variable(const Variable&) {}
  void object(const void*) {}
  void key(const std::string&) {}
  void open(std::string_view) {}
  void close(std::string_view) {}

 private:
  std::span<const Tensor> tensors_;
  size_t next_ = 0;
};

template <class T>
inline constexpr bool is_object =
    !(std::is_same_v<T, Tensor> || std::is_same_v<T, Variable> || is_constant<T> || is_list<T> || is_string_map<T> || is_tuple<T> ||
      is_instance<T, std::optional> || std::is_pointer_v<T> || is_struct<T>());

/// The same for an argument, which may be an object of any other type: it is known by its address.
template <class T, class V>
void visit_argument(T& x, V& visitor) {
  if constexpr (is_object<std::remove_const_t<T>>)
    visitor.object(std::addressof(x));
  else
    visit_leaves(x, visitor);
}

/// How an argument is kept for a call: objects where they are, the others as copies, which get other tensors.
template <class Arg>
struct JitKept {
  using D = std::decay_t<Arg>;
  static_assert(!is_object<D> || std::is_lvalue_reference_v<Arg>,
                "jit: an argument that is no tensor, number or container must be an lvalue");
  using type =
      std::conditional_t<std::is_same_v<D, const char*> || std::is_same_v<D, char*>, std::string, std::conditional_t<is_object<D>, Arg, D>>;
};

template <class T>
inline constexpr char result_tag = 0;

/// Never defined: for what ends in a static_assert.
template <class T>
T anything();

[[noreturn]] TINYGRAD_EXPORT void throw_out_of_host_memory();

}  // namespace detail

/// A jitted function. Copies share what was captured. Any number of threads may call it.
///
/// The first call runs the function; a later one that computes the same by the same steps is captured (the second one, as a rule), and the
/// following ones replay its kernels without running the function. What a call replays:
///
/// - Arguments are tensors, lists, tuples, maps by name, optionals and plain structs of such, and bound Variables; each call has its own.
///   A call with other shapes, dtypes or devices is captured besides (JitOptions::captures). A view of a part of a tensor's memory is
///   copied. What shares memory must be as in the captured call.
/// - Numbers, strings and objects among the arguments are part of what was captured: other ones throw JitError.
/// - Tensors that the function finds elsewhere (weights) are read and written where they are now. What it assigns to them is assigned by a
///   replay too. If one of them was replaced by another tensor, the function is captured anew.
/// - Numbers that the function finds elsewhere, and branches it takes on them, are those of the captured call. JitOptions::check finds such
///   that change.
/// - Random numbers are drawn from the process's sequence, as they are without jit.
/// - Results have memory of their own. Tensors made by the function that something else keeps (gradients, tensors put into objects) hold
/// the
///   values of the latest call. Gradients of arguments are not set.
///
/// Threads: any number of them may replay at once. A tensor that a replay reads elsewhere (weights) must not be written meanwhile, by
/// assign(), set_item(), an optimizer or load_state_dict(): a replay that is running would see some of the new values. Two ways are right:
///
/// - Hold a std::shared_lock of one std::shared_mutex around each call, and a std::unique_lock around all that is assigned. Stores that
///   still wait then are run by the first call that reads them, and the others wait for it.
/// - Swap: make another model with a jitted function of its own, call that until it is captured(), and let the threads take both from one
///   std::shared_ptr, which is replaced under a std::mutex. Calls that run end with the old weights. It is the way where calls must not
///   wait.
///
/// The function returns nothing, or tensors in such containers. Reading the values of tensors (item(), data(), tolist()) or seeding the
/// random sequence in it throws JitError from the second call on. Inside another jitted function it is a plain function, and with JIT=0.
template <class F>
class Jit {
 public:
  explicit Jit(F function, const JitOptions& options = {}) : shared_(std::make_shared<Shared>(std::move(function), options)) {}

  /// Throws JitError for a call that cannot be captured or replayed correctly, OutOfMemoryError for a std::bad_alloc, and what the function
  /// throws.
  template <class... Args>
  auto operator()(Args&&... args) const {
    try {
      return call(std::forward<Args>(args)...);
    } catch (const std::bad_alloc&) {
      detail::throw_out_of_host_memory();
    }
  }

  /// Forgets what was captured.
  void reset() const { shared_->core.reset(); }
  /// Gives back the memory between the kernels; the next replay takes some anew.
  void free_intermediates() const { shared_->core.free_intermediates(); }
  /// Writes what was captured last (the kernels, and the values of all tensors that they read) to a file that LoadedJit runs. One captured
  /// with CHECK_OOB looks at indices there too. JitError if nothing is captured, IoError.
  void save(const std::string& path) const { shared_->core.save(path); }
  /// Whether there is something to replay.
  bool captured() const { return shared_->core.captured(); }

 private:
  template <class... Args>
  auto call(Args&&... args) const {
    using Kept = std::tuple<typename detail::JitKept<Args>::type...>;
    Kept kept(std::forward<Args>(args)...);
    using R = std::remove_cvref_t<decltype(std::apply(shared_->function, kept))>;
    detail::JitArguments arguments;
    detail::JitCollector collector(arguments);
    std::apply([&](auto&... a) { (detail::visit_argument(a, collector), ...); }, kept);
    const auto fill = [&](std::span<const Tensor> tensors) {
      detail::JitFiller filler(tensors);
      std::apply([&](auto&... a) { (detail::visit_argument(a, filler), ...); }, kept);
    };
    if constexpr (std::is_void_v<R>) {
      shared_->core.call(arguments, &detail::result_tag<R>, [&](std::span<const Tensor> tensors) {
        fill(tensors);
        std::apply(shared_->function, kept);
        fill({});
        return detail::JitResults();
      });
    } else if constexpr (!detail::holds_tensors<R>()) {
      static_assert(
          detail::holds_tensors<R>(),
          "jit: the function returns something besides tensors, which each replay would give as it was when the call was captured; "
          "return nothing, a Tensor, or tensors in lists, tuples, maps, optionals and plain structs, and a number as Tensor(number)");
      return detail::anything<R>();
    } else {
      std::optional<R> result;
      const auto body = [&](std::span<const Tensor> tensors) {
        fill(tensors);
        result.emplace(std::apply(shared_->function, kept));
        fill({});
        return results_of(*result);
      };
      if (const auto replayed = shared_->core.call(arguments, &detail::result_tag<R>, body)) {
        result.emplace(*static_cast<const R*>(replayed->skeleton.get()));
        detail::JitFiller filler(replayed->tensors);
        detail::visit_leaves(*result, filler);
      }
      return std::move(*result);
    }
  }

  template <class R>
  static detail::JitResults results_of(const R& result) {
    detail::JitArguments found;
    detail::JitCollector collector(found);
    detail::visit_leaves(result, collector);
    auto skeleton = std::make_shared<R>(result);
    detail::JitFiller nothing;
    detail::visit_leaves(*skeleton, nothing);
    return {std::move(found.tensors), std::move(skeleton)};
  }

  struct Shared {
    Shared(F f, const JitOptions& options) : function(std::move(f)), core(options) {}
    F function;
    detail::JitCore core;
  };
  std::shared_ptr<Shared> shared_;
};

/// A captured call from a file that Jit::save() wrote, in any process: the tensors of the arguments and of the results as lists, in the
/// order in which they stood in their containers. The tensors that the function had found elsewhere are its own now. Kernels are compiled
/// anew, or come from the disk cache. Any number of threads may call it.
class TINYGRAD_EXPORT LoadedJit {
 public:
  /// FormatError for a file that is damaged, of another version, or not what save() writes; IoError; DeviceError where a device is missing.
  explicit LoadedJit(const std::string& path);
  ~LoadedJit();
  /// Throws JitError for arguments of other shapes, dtypes or devices.
  std::vector<Tensor> operator()(std::span<const Tensor> arguments, std::span<const Variable> variables = {}) const;
  std::vector<Tensor> operator()(std::initializer_list<Tensor> arguments, std::initializer_list<Variable> variables = {}) const {
    return (*this)(std::span(arguments.begin(), arguments.size()), std::span(variables.begin(), variables.size()));
  }

 private:
  std::shared_ptr<jitted::CapturedCall> captured_;
};

/// `jit([&](const Tensor& x) { return net(x); })`: see Jit.
template <class F>
Jit<std::decay_t<F>> jit(F&& function, const JitOptions& options = {}) {
  return Jit<std::decay_t<F>>(std::forward<F>(function), options);
}

}  // namespace tinygrad
