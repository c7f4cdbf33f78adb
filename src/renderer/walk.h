#pragma once
/// What renderers do alike: they go through a linear program in order, and know what each of its instructions gave.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernel/kernel_info.h"
#include "uop/node_map.h"
#include "uop/uop.h"

namespace tinygrad::renderer {

/// Visits the instructions of a linear program, each by the function of its kind. A renderer overrides those that its language has; for the
/// others there is an InternalError. What belongs to other instructions, such as a number of lanes, is given to them as a number.
class Walk {
 public:
  virtual ~Walk() = default;

 protected:
  /// `language` is for messages. The program and its description outlive this.
  Walk(std::string_view language, const UOp& linear, const KernelInfo& info) : linear_(linear), info_(info), language_(language) {}

  /// InternalError for a block without an end, or an end without a block.
  void walk();
  void visit(const UOp& u);
  /// Once for each instruction, with its place in the list.
  virtual void step(const UOp& u, [[maybe_unused]] size_t place) { visit(u); }

  virtual void parameter(const UOp& u) { has_none(u); }
  virtual void variable(const UOp& u) { has_none(u); }
  virtual void constant(const UOp& u, const Scalar& value) = 0;
  virtual void special(const UOp& u) { has_none(u); }
  virtual void own_memory(const UOp& u) = 0;  ///< a BUFFER
  virtual void open_loop(const UOp& range) = 0;
  virtual void close_loop() = 0;
  virtual void open_if(const UOp& u) = 0;
  virtual void close_if() = 0;
  virtual void address(const UOp& u) = 0;                            ///< an INDEX of memory
  virtual void lanes(const UOp& u, int64_t begin, int64_t end) = 0;  ///< a SHRINK, or an INDEX of a vector
  virtual void load(const UOp& u) = 0;
  virtual void store(const UOp& u) = 0;
  virtual void prefetch(const UOp& u) { has_none(u); }
  virtual void expand(const UOp& u, int64_t lanes) = 0;
  virtual void stack(const UOp& u) = 0;
  virtual void elementwise(const UOp& u) = 0;  ///< ALU ops and conversions
  virtual void barrier(const UOp& u) { has_none(u); }
  virtual void fetch(const UOp& u) { has_none(u); }
  virtual void commit(const UOp& u) { has_none(u); }
  virtual void wait(const UOp& u, [[maybe_unused]] int32_t pending) { has_none(u); }
  virtual void product(const UOp& u) { has_none(u); }        ///< a WMMA
  virtual void begin_product(const UOp& u) { has_none(u); }  ///< an asynchronous one
  virtual void wait_for_products(const UOp& u) { has_none(u); }

  [[noreturn]] void fail(const UOp& u, std::string_view what) const;
  [[noreturn]] void has_none(const UOp& u) const;
  /// The argument of a slot, and the place of a variable among those of the launch.
  const KernelParam& parameter_of(const UOp& u) const;
  size_t place_of_variable(const UOp& u) const;

  const UOp& linear_;
  const KernelInfo& info_;

 private:
  int64_t known_number(const UOp& u, size_t source) const;
  void close(const UOp& u, Op opener);

  std::string language_;
  std::vector<Op> open_;  ///< RANGEs and IFs without their ends
};

[[noreturn]] void no_result_of(const UOp& u);

/// What instructions gave: values, or addresses.
template <class T>
class Results {
 public:
  void set(const UOp& u, T result) {
    place_of_[u] = int32_t(all_.size());
    all_.push_back(std::move(result));
  }
  /// InternalError if it has none.
  const T& of(const UOp& u) const {
    const int32_t* at = place_of_.find(u);
    if (!at) no_result_of(u);
    return all_[size_t(*at)];
  }

 private:
  NodeMap<int32_t> place_of_;
  std::vector<T> all_;
};

/// Registers with the addresses that accesses of a memory share, which differ by numbers: once for a block and those inside it.
class SharedAddresses {
 public:
  void open_block() { blocks_.emplace_back(); }
  void close_block() { blocks_.pop_back(); }
  /// The one of the memory and an index, which `make` gives where there is none.
  template <class Make>
  const std::string& get(const UOp& memory, const UOp& index, Make&& make) {
    for (const Block& block : blocks_)
      if (const NodeMap<std::string>* of = block.find(memory))
        if (const std::string* known = of->find(index)) return *known;
    std::string made = make();
    return blocks_.back()[memory][index] = std::move(made);
  }

 private:
  using Block = NodeMap<NodeMap<std::string>>;
  std::vector<Block> blocks_{1};
};

}  // namespace tinygrad::renderer
