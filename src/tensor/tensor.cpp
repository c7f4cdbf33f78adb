// What a Tensor is, its values, and how it changes.
#include <tinygrad/tensor.h>

#include <fmt/core.h>

#include <cstring>
#include <ostream>

#include <tinygrad/context.h>
#include <tinygrad/errors.h>
#include <tinygrad/helpers.h>

#include "base/file.h"
#include "base/options.h"
#include "device/device.h"
#include "dtype/convert.h"
#include "dtype/visit.h"
#include "engine/host_memory.h"
#include "ops/elementwise.h"
#include "shape/device.h"
#include "tensor/handle.h"
#include "tensor/memory.h"
#include "tensor/observer.h"
#include "tensor/realize.h"
#include "tensor/storage.h"
#include "uop/build.h"

namespace tinygrad {

using detail::CellPtr;
using detail::TensorCell;

namespace tensor {

ops::OpsContext context() {
  const Options& o = current_options();
  return {.default_float = parse_dtype(o.default_float), .default_int = parse_dtype(o.default_int)};
}

ops::OpsContext context_on(std::string_view device) {
  ops::OpsContext ctx = context();
  ctx.device = device.empty() ? Device::default_name() : Device::get(device).name();
  return ctx;
}

ops::Operand to_operand(const Operand& x) {
  return std::visit(
      [](const auto& v) -> ops::Operand {
        if constexpr (std::is_same_v<decltype(v), const Tensor&>)
          return v.uop();
        else if constexpr (std::is_same_v<decltype(v), const Extent&>)
          return ops::Operand::number_of(to_size(v));
        else
          return v;
      },
      x.value());
}

std::vector<UOp> to_nodes(std::span<const Tensor> tensors) {
  std::vector<UOp> nodes;
  for (const Tensor& t : tensors) nodes.push_back(t.uop());
  return nodes;
}

DType of_values(DType dtype) {
  if (itemsize(dtype) == 0) tinygrad::detail::throw_no_values(dtype);
  return dtype;
}

Shape to_shape(const Sizes& sizes) { return {sizes.begin(), sizes.end()}; }
Axes to_axes(const std::vector<int>& axes) { return {axes.begin(), axes.end()}; }
ops::ReduceAxes to_axes(const AxisList& axes) { return axes.get() ? ops::ReduceAxes(to_axes(*axes.get())) : ops::ReduceAxes(); }

}  // namespace tensor

using namespace tensor;

TensorCell& detail::cell_of(const Tensor& tensor) { return tensor.cell(); }

TensorCell& Tensor::cell() const {
  if (!cell_) throw ValueError("Tensor: this handle holds no tensor; give it one first");
  return *cell_;
}

UOp Tensor::uop() const {
  detail::TensorCell& mine = cell();
  if (Observer* r = Observer::current()) r->reads(mine);
  return mine.node();
}
Tensor Tensor::from_uop(const UOp& node, const char* operation) { return Tensor(detail::make_cell(node, is_view(node), operation)); }
Tensor Tensor::from_value(const UOp& node, const char* operation) { return Tensor(detail::make_cell(node, false, operation)); }

namespace {

int64_t count_of(const Sizes& shape, std::string_view what) {
  int64_t count = 1;
  for (int64_t s : shape) {
    if (s < 0) throw ShapeError(fmt::format("{}: {} has a negative size", what, tinygrad::to_string(to_shape(shape))));
    if (__builtin_mul_overflow(count, s, &count))
      throw ShapeError(fmt::format("{}: the shape has more elements than fit into 64 bits", what));
  }
  return count;
}

std::vector<std::byte> converted(std::span<const std::byte> bytes, DType from, DType to) {
  const size_t count = bytes.size() / itemsize(from);
  std::vector<std::byte> out(count * itemsize(to));
  convert_array(to, out.data(), from, bytes.data(), count);
  return out;
}

}  // namespace

Tensor::Tensor(std::span<const std::byte> bytes, DType dtype, const Sizes& shape, const TensorOptions& options) {
  const DType wanted = of_values(options.dtype.value_or(of_values(dtype)));
  const int64_t count = count_of(shape, "Tensor");
  if (bytes.size() != static_cast<size_t>(count) * itemsize(dtype))
    throw ShapeError(fmt::format("Tensor: {} values of {} cannot have the shape {}", bytes.size() / itemsize(dtype), repr(dtype),
                                 tinygrad::to_string(to_shape(shape))));
  const Devices devices = named_devices(options.device);
  const Symbol device = devices.first();
  if (devices.are_several() || is_storage(device)) {
    *this =
        Tensor(bytes, dtype, shape, {.dtype = wanted, .device = is_storage(device) ? "CPU" : std::string(device.str())}).to(options.device);
    return;
  }
  if (count == 0) {
    *this = from_uop(make_memory(to_shape(shape), wanted, device));
    return;
  }
  const UOp memory = wanted == dtype ? upload(bytes, dtype, device) : upload(converted(bytes, dtype, wanted), wanted, device);
  *this = from_uop(shape.size() == 1 ? memory : tinygrad::reshape(memory, to_shape(shape)));
}

Tensor Tensor::from_blob(void* data, const Sizes& shape, const TensorOptions& options, std::shared_ptr<void> owner) {
  const ops::OpsContext ctx = context_on(options.device);
  const DType dtype = of_values(options.dtype.value_or(ctx.default_float));
  const int64_t count = count_of(shape, "from_blob");
  if (!data && count != 0) throw ValueError("from_blob: got a null pointer");
  if (reinterpret_cast<uintptr_t>(data) % itemsize(dtype) != 0)
    throw ValueError(
        fmt::format("from_blob: memory of {} must begin at a multiple of {} bytes; copy it first", repr(dtype), itemsize(dtype)));
  if (count == 0) return empty(shape, {.dtype = dtype, .device = options.device});
  const BufferPtr resource = Buffer::make(Device::get(ctx.device.str()), count, dtype, {.external_ptr = data, .owner = std::move(owner)});
  const UOp memory = buffer(dtype, {.id = next_buffer_id(), .size = count, .device = ctx.device, .resource = resource});
  if (Observer* r = Observer::current()) {
    r->made(memory);
    r->uploaded(memory, {static_cast<const std::byte*>(data), resource->nbytes()});
  }
  return from_uop(shape.size() == 1 ? memory : tinygrad::reshape(memory, to_shape(shape)));
}

Tensor Tensor::from_blob_of(DType written, void* data, const Sizes& shape, const TensorOptions& options, std::shared_ptr<void> owner) {
  const DType wanted = of_values(options.dtype.value_or(written));
  const bool is_bits = itemsize(written) == 1 || (is_unsigned(written) && itemsize(written) == itemsize(wanted));
  if (wanted != written && !is_bits)
    throw DTypeError(fmt::format("from_blob: got a pointer to {} and the dtype {}; give the memory's own dtype, and cast() the tensor",
                                 repr(written), repr(wanted)));
  return from_blob(data, shape, {.dtype = wanted, .device = options.device}, std::move(owner));
}

void detail::throw_ragged(size_t depth, int64_t expected, size_t got) {
  throw ShapeError(fmt::format("Tensor: the lists at depth {} have different lengths, {} and {}", depth, expected, got));
}

Tensor Tensor::from_file(const std::string& path, const TensorOptions& options) {
  const DType dtype = of_values(options.dtype.value_or(DType::uint8));
  const auto bytes = static_cast<int64_t>(file_size(path)), each = static_cast<int64_t>(itemsize(dtype));
  if (bytes % each != 0)
    throw ValueError(fmt::format("from_file: '{}' has {} bytes, which are no whole elements of {}", path, bytes, repr(dtype)));
  const Tensor there = empty({bytes / each}, {.dtype = dtype, .device = "DISK:" + absolute_path(path)});
  return options.device.empty() ? there : there.to(options.device);
}

Tensor Tensor::from_url(const std::string& url, bool gunzip, const TensorOptions& options) {
  if (options.dtype.value_or(DType::uint8) != DType::uint8)
    throw DTypeError(fmt::format("from_url: gives dtypes.uint8, got {}; bitcast() the result", repr(*options.dtype)));
  const auto file = std::make_shared<MappedFile>(fetch(url, {.gunzip = gunzip}), MappedFile::Access::copy_on_write);
  const Tensor bytes = from_blob(file->writable_data(), {int64_t(file->size())}, {.dtype = DType::uint8, .device = "CPU"}, file);
  return options.device.empty() ? bytes : bytes.to(options.device);
}

TensorOptions Tensor::literal(std::span<const std::byte> values, DType written, TensorOptions options) {
  const ops::OpsContext ctx = context();
  const bool asked = options.dtype.has_value();
  if (!asked) options.dtype = is_float(written) ? ctx.default_float : is_bool(written) ? DType::bool_ : ctx.default_int;
  if (!is_int(of_values(*options.dtype))) return options;
  ops::LiteralInt natural(ctx.default_int);
  for (size_t at = 0; at < values.size(); at += itemsize(written)) {
    const Scalar value = Scalar::from_bytes(values.data() + at, written);
    if (asked)
      checked_cast(value, *options.dtype, "Tensor");
    else
      natural.add(value);
  }
  if (!asked) options.dtype = natural.dtype();
  return options;
}

namespace {

/// A size in numbers. What a variable gives is of this call only.
int64_t size_now(const SInt& s) {
  if (s.known()) return s.value();
  if (Observer* r = Observer::current()) r->used_host("shape(), size() or numel() of symbolic sizes; use symbolic_shape() or max_shape(),");
  return value_now(s);
}

}  // namespace

Sizes Tensor::shape() const {
  Sizes out;
  for (const SInt& s : shape_of(uop())) out.push_back(size_now(s));
  return out;
}

Extents Tensor::symbolic_shape() const {
  Extents out;
  for (const SInt& s : shape_of(uop())) out.push_back(to_extent(s));
  return out;
}

Sizes Tensor::max_shape() const {
  const auto sizes = max_sizes(shape_of(uop()));
  return {sizes.begin(), sizes.end()};
}

int64_t Tensor::max_numel() const {
  int64_t n = 1;
  for (int64_t s : max_shape()) n *= s;
  return n;
}

int64_t Tensor::size(int axis) const {
  const Shape s = shape_of(uop());
  const int a = axis < 0 ? axis + static_cast<int>(s.size()) : axis;
  if (a < 0 || a >= static_cast<int>(s.size()))
    throw IndexError(fmt::format("size: axis {} is out of range for {}", axis, tinygrad::to_string(s)));
  return size_now(s[static_cast<size_t>(a)]);
}

int Tensor::ndim() const { return static_cast<int>(rank_of(uop())); }
int64_t Tensor::numel() const {
  int64_t n = 1;
  for (int64_t s : shape()) n *= s;
  return n;
}
DType Tensor::dtype() const { return uop().dtype(); }

std::string Tensor::device() const {
  std::string out;
  for (const std::string& d : devices()) out += (out.empty() ? "" : ",") + d;
  return out;
}

std::string Tensor::to_string() const {
  if (!defined()) return "<Tensor undefined>";
  return fmt::format("<Tensor {} {} on {}>", tinygrad::to_string(shape_of(uop())), repr(dtype()), device());
}

std::ostream& operator<<(std::ostream& out, const Tensor& x) { return out << x.to_string(); }

Context Tensor::train(bool mode) { return Context({.training = mode}); }
bool Tensor::training() { return current_options().training; }

// Running.

const Tensor& Tensor::realize() const& {
  cell();
  tensor::realize(std::span(&cell_.get(), 1));
  return *this;
}

void Tensor::realize(std::span<const Tensor> tensors) {
  engine::with_host_memory([&] {
    std::vector<CellPtr> cells;
    for (const Tensor& t : tensors) {
      t.cell();
      cells.push_back(t.cell_.get());
    }
    tensor::realize(cells);
  });
}

void Tensor::callify(std::span<const Tensor> tensors) { tensor::give_memory(to_nodes(tensors)); }

namespace {

/// The box of these sizes at the beginning of an array laid out for others.
void copy_box(std::byte* to, const std::byte* from, const Sizes& sizes, const SmallVector<int64_t, 6>& strides, size_t itemsize) {
  const size_t run = static_cast<size_t>(sizes.back()) * itemsize;
  std::vector<int64_t> at(sizes.size() - 1, 0);
  for (;;) {
    int64_t offset = 0;
    for (size_t i = 0; i < at.size(); ++i) offset += at[i] * strides[i];
    std::memcpy(to, from + static_cast<size_t>(offset) * itemsize, run);
    to += run;
    size_t axis = at.size();
    while (axis > 0 && ++at[axis - 1] == sizes[axis - 1]) at[--axis] = 0;
    if (axis == 0) return;
  }
}

/// What `make` makes of a tensor; once more where another thread's realize has given the tensor another node meanwhile, since the one
/// before may be of memory that was overwritten.
Tensor made_of(const Tensor& t, FunctionRef<Tensor(const Tensor&)> make) {
  for (;;) {
    const uint64_t version = detail::cell_of(t).version();
    Tensor made = make(t);
    if (detail::cell_of(t).version() == version) return made;
  }
}

Tensor contiguous_now(const Tensor& t) {
  return made_of(t, [](const Tensor& x) { return Tensor::from_uop(UOp(Op::CONTIGUOUS, x.dtype(), {x.uop()}), "contiguous"); });
}

/// The elements of a value with symbolic sizes, which in memory has room for the greatest, without that room.
UOp packed(const Tensor& t) {
  const UOp node = contiguous_now(t).realize().uop();
  Buffer& buffer = buffer_of(state_of_view(node));
  const size_t size = itemsize(t.dtype());
  std::vector<std::byte> all(static_cast<size_t>(buffer.size()) * size), used(static_cast<size_t>(t.nbytes()));
  buffer.copyout(all);
  copy_box(used.data(), all.data(), t.shape(), row_major_strides(shape_of(node)), size);
  return upload(used, t.dtype(), Symbol(t.device()));
}

/// The computed elements, row-major, as memory: the tensor's own where they follow one another in it. A tensor that is not computed yet
/// stays so: it keeps its way to those that it was made of, along which gradients go.
BufferPtr row_major(Tensor t) {
  if (!all_known(shape_of(t.uop()))) return BufferPtr(&buffer_of(packed(t)));
  if (state_of_view(t.uop())) t.realize();
  if (BufferPtr own = piece_of_memory(t.uop())) return own;
  t = contiguous_now(t);
  t.realize();
  return BufferPtr(&buffer_of(whole_buffer(t.uop())));
}

/// Whether the host cannot read what is there, or not all of it.
bool is_elsewhere(const Devices& d) { return d.are_several() || rank_of(d.only()) >= 0; }

void note_host_use() {
  if (Observer* r = Observer::current()) r->used_host("item(), tolist() or data()");
}

}  // namespace

void Tensor::read(DType as, size_t count, void* (*take)(void* self, const void* ready), void* self) const {
  engine::with_host_memory([&] {
    note_host_use();
    if (count == 0) return;
    if (is_storage(uop())) return to("CPU").read(as, count, take, self);
    if (const Devices d = devices_of(uop()); is_elsewhere(d)) return to(without_rank(d.first()).str()).read(as, count, take, self);
    if (as != dtype() && !is_dtype_supported(as, device())) {
      const std::vector<std::byte> own = data();
      return convert_array(as, take(self, nullptr), dtype(), own.data(), count);
    }
    // It lives until its elements are there: what is made of a tensor that is gone would be nobody's to bring up to date.
    const Tensor source = as == dtype() ? *this : made_of(*this, [&](const Tensor& x) { return x.cast(as); });
    const BufferPtr memory = row_major(source);
    memory->check_readable();
    if (const std::byte* host = memory->device().allocator().host_pointer(memory->handle())) {
      memory->device().wait();
      memory->check_readable();  // what was launched may have failed
      take(self, host);
    } else {
      memory->copyout({static_cast<std::byte*>(take(self, nullptr)), count * itemsize(as)});
    }
  });
}

void Tensor::read(void* to_host, DType as, size_t count) const {
  struct Place {
    void* to;
    size_t bytes;
  } place{to_host, count * itemsize(as)};
  const auto take = [](void* self, const void* ready) -> void* {
    const auto [to, bytes] = *static_cast<Place*>(self);
    if (ready) std::memcpy(to, ready, bytes);
    return to;
  };
  read(as, count, take, &place);
}

std::shared_ptr<std::byte> Tensor::host_memory() const {
  note_host_use();
  if (numel() == 0) return nullptr;
  if (is_storage(uop())) return to("CPU").host_memory();
  if (const Devices d = devices_of(uop()); is_elsewhere(d)) return to(without_rank(d.first()).str()).host_memory();
  realize();
  auto owner = std::make_shared<BufferPtr>(row_major(*this));
  Buffer& memory = **owner;
  memory.check_readable();
  memory.device().wait();
  if (memory.device().allocator().host_pointer(memory.handle())) return {owner, memory.data()};
  const auto copy = std::make_shared<std::vector<std::byte>>(memory.nbytes());
  memory.copyout(*copy);
  return {copy, copy->data()};
}

std::vector<std::byte> Tensor::data() const {
  std::vector<std::byte> out;
  const auto count = static_cast<size_t>(numel());
  struct Place {
    std::vector<std::byte>& out;
    size_t bytes;
  } place{out, count * itemsize(dtype())};
  const auto take = [](void* self, const void* ready) -> void* {
    const Place& p = *static_cast<Place*>(self);
    const auto* from = static_cast<const std::byte*>(ready);
    ready ? p.out.assign(from, from + p.bytes) : p.out.resize(p.bytes);
    return p.out.data();
  };
  read(dtype(), count, take, &place);
  return out;
}

// Changing.

namespace {

/// The number that a value is everywhere, where it is known.
const Scalar* only_number(const UOp& value) {
  const UOp* u = &value;
  while (u->is(Op::EXPAND) || u->is(Op::RESHAPE) || u->is(Op::WEAK) || u->is(Op::TENSOR)) u = &u->src(0);
  return u->is(Op::CONST) ? const_value(*u) : nullptr;
}

/// What is written into `node`: of its dtype if that is what the value promotes to beside it, and weak if it is.
UOp as_written(const UOp& value, const UOp& node) {
  const Scalar* number = only_number(value);
  UOp out = value;
  const ops::OpsContext ctx = context();
  const bool is_default = number && (value.dtype() == ctx.default_int || value.dtype() == ctx.default_float || is_bool(value.dtype()));
  if (value.is_weak() || is_default) {
    const ops::Operand weak = number ? ops::Operand(*number) : ops::Operand(value);
    if (ops::common_dtype(ops::strong(node), weak, ctx) == node.dtype()) out = tinygrad::cast(value, node.dtype());
  }
  return node.is_weak() ? ops::weak(out) : ops::strong(out);
}

}  // namespace

Tensor& Tensor::assign(const Tensor& x) & {
  const UOp node = uop(), value = as_written(x.uop(), node);
  if (shape_of(node) != shape_of(value))
    throw ShapeError(fmt::format("assign: cannot write {} into {}; the shapes must be equal", tinygrad::to_string(shape_of(value)),
                                 tinygrad::to_string(shape_of(node))));
  if (node.dtype() != value.dtype())
    throw DTypeError(fmt::format("assign: cannot write {} into {}; cast the value", repr(value.dtype()), repr(node.dtype())));
  const Devices to = devices_of(node), from = devices_of(value);
  if (is_storage(node)) {
    tensor::write_storage(node, value);
    return *this;
  }
  if (!to.empty() && !from.empty() && to != from && !(to.are_several() && !from.are_several() && to.has(from.only())))
    throw DeviceError(fmt::format("assign: cannot write a value on {} into a tensor on {}; use to()", tinygrad::to_string(from),
                                  tinygrad::to_string(to)));
  const bool ends_gradient = is_detached_view(value) && !is_detached_view(node);
  if (plain_view(node) != plain_view(value) || ends_gradient) tensor::assign(cell(), [&] { return as_written(x.uop(), cell().node()); });
  return *this;
}

Tensor& Tensor::replace(const Tensor& x) & {
  const UOp node = x.uop();
  if (cell_)
    cell_->set_node(tensor_node(node, detail::next_cell_number(), true, ValueOrigin::of("replace")));
  else
    *this = from_uop(node);
  return *this;
}

Tensor Tensor::clone() const {
  if (is_storage(uop())) throw DeviceError(fmt::format("clone: {} has no memory but this; copy with to(\"CPU\")", device()));
  Tensor out = from_uop(copied(uop())).is_param_(is_param());
  if (const Tensor g = grad(); g.defined()) out.set_grad(g.clone());
  return out;
}
Tensor Tensor::contiguous() const { return wrap(ops::contiguous(uop())); }
Tensor Tensor::contiguous_backward() const { return wrap(ops::contiguous_backward(uop())); }

Tensor Tensor::to(std::string_view device) const {
  const UOp x = uop();
  const Devices devices = named_devices(device);
  if (devices.are_several()) return wrap_view(devices_of(x) == devices ? x : placed(x, {devices, {}})).is_param_(is_param());
  const Symbol to = devices.only();
  if (devices_of(x) == devices) return wrap_view(x).is_param_(is_param());
  if (is_storage(to)) return wrap_view(stored(x, to)).is_param_(is_param());
  return wrap_view(is_storage(x) ? copied_from_storage(x, to) : ops::copy_to(x, to)).is_param_(is_param());
}
Tensor& Tensor::to_(std::string_view device) & { return replace(to(device)); }

}  // namespace tinygrad
