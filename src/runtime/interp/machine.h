#pragma once
/// One launch of a program: groups one after another, the items of a group in lock step.

#include <deque>
#include <span>
#include <string_view>
#include <vector>

#include "kernel/kernel_info.h"
#include "runtime/interp/program.h"
#include "runtime/interp/shadow.h"

namespace tinygrad::runtime::interp {

/// Executes each instruction for all items of a group before the next. Errors of the program (accesses out of bounds, races, reads of
/// memory that nobody has written, loops and barriers that diverge) throw InternalError with the kernel, the instruction and the item; more
/// instructions than INTERP_STEPS throw DeviceError.
class Machine {
 public:
  Machine(const Program& program, std::span<void* const> buffers, std::span<const int64_t> variables, const LaunchDims& dims);
  void run();

 private:
  /// The memory of one launch.
  struct Storage {
    std::byte* bytes = nullptr;      // of a PARAM
    std::vector<uint64_t> elements;  // canonical bits of the kernel's own; those of scope reg by element, then item
    std::vector<uint8_t> written;    // of scope reg, as elements
    std::vector<uint8_t> fetching;   // of scope group: a copy to the element has begun and was not waited for
    int64_t size = 0;
    int shadow = -1;
  };

  /// One element of a FETCH.
  struct Copy {
    int32_t memory = 0;
    int64_t to = 0;
    size_t item = 0;
    uint64_t value = 0;
  };

  void set_up_memory(std::span<void* const> buffers);
  void run_group();
  void begin_group();
  size_t step(size_t pc);

  void run_param(const Instruction& i);
  void run_special(const Instruction& i);
  size_t run_range(const Instruction& i, size_t pc);
  size_t run_end(const Instruction& i, size_t pc);
  size_t run_if(const Instruction& i, size_t pc);
  void run_barrier(const Instruction& i);
  void run_load(const Instruction& i);
  void run_store(const Instruction& i);
  void run_fetch(const Instruction& i);
  void begin_copy(const Instruction& i, int64_t to, size_t item, uint64_t value);
  void run_wait(const Instruction& i);
  void run_lanes(const Instruction& i);
  void run_elementwise(const Instruction& i);
  void run_wmma(const Instruction& i);
  std::vector<double> factor_in_memory(const Instruction& i, int factor, size_t first);
  void copy_lane(int32_t from, int32_t lane, int32_t to, int32_t to_lane);

  uint64_t read(const Instruction& i, Storage& storage, const Memory& memory, int64_t at, size_t item);
  uint64_t read_texel(const Instruction& i, Storage& storage, const Memory& memory, size_t lane, size_t item);
  int64_t place_in_image(const Instruction& i, const Memory& memory, size_t lane, size_t item) const;
  void write(const Instruction& i, Storage& storage, const Memory& memory, int64_t at, size_t item, uint64_t value);
  void check_all_active(const Instruction& i) const;
  void check_bounds(const Instruction& i, const Storage& storage, int64_t at, size_t item) const;
  int64_t uniform_value(const Instruction& i, int32_t reg) const;

  [[noreturn]] void give_up() const;
  [[noreturn]] void fail(const Instruction& i, size_t item, std::string_view what) const;

  size_t count(const Register& r) const { return r.uniform ? 1 : items_; }
  uint64_t* data(const Register& r) { return const_cast<uint64_t*>(std::as_const(*this).data(r)); }
  const uint64_t* data(const Register& r) const {
    return r.uniform ? uniform_.data() + r.offset : varying_.data() + r.offset * static_cast<int64_t>(items_);
  }
  const Register& reg(int32_t r) const { return program_.registers[static_cast<size_t>(r)]; }
  /// The number of a lane of an item; a register of one lane has it for every lane.
  uint64_t at(int32_t r, size_t lane, size_t item) const {
    const Register& x = reg(r);
    const size_t n = count(x);
    return data(x)[(x.lanes == 1 ? 0 : lane * n) + (n == 1 ? 0 : item)];
  }
  bool active(size_t item) const { return masks_.empty() || masks_.back()[item]; }

  const Program& program_;
  std::span<const int64_t> variables_;
  const LaunchDims dims_;
  const size_t items_;
  const uint64_t max_steps_;
  uint64_t steps_ = 0, instructions_ = 0;
  int64_t group_[3] = {0, 0, 0};
  bool parallel_ = false;  // more than one item in the launch: races are possible
  Moment now_;

  std::vector<uint64_t> uniform_, varying_;  // registers: lanes, in each the items
  std::vector<Storage> storage_;
  std::vector<Shadow> shadows_;
  std::vector<std::vector<uint8_t>> masks_;  // of the open IFs, innermost last
  std::deque<std::vector<Copy>> copies_{1};  // that have begun: the sets that were COMMITted, and the one that is open
};

}  // namespace tinygrad::runtime::interp
