#include "uop/arg.h"

#include <utility>

namespace tinygrad {

Arg::Arg() noexcept = default;
Arg::Arg(const Arg&) = default;
Arg::Arg(Arg&&) noexcept = default;
Arg& Arg::operator=(const Arg&) = default;
Arg& Arg::operator=(Arg&&) noexcept = default;
Arg::~Arg() = default;

template <class T>
  requires(detail::is_alternative<T, ArgValue>)
Arg::Arg(T value) : ArgValue(std::in_place_type<T>, std::move(value)) {}

template Arg::Arg(NoArg);
template Arg::Arg(ConstArg);
template Arg::Arg(VarArg);
template Arg::Arg(AxesArg);
template Arg::Arg(ReduceArg);
template Arg::Arg(BufferArg);
template Arg::Arg(ParamArg);
template Arg::Arg(IndexArg);
template Arg::Arg(DeviceArg);
template Arg::Arg(StageArg);
template Arg::Arg(RangeArg);
template Arg::Arg(SpecialArg);
template Arg::Arg(KernelArg);
template Arg::Arg(LinearArg);
template Arg::Arg(TextArg);
template Arg::Arg(FunctionArg);
template Arg::Arg(TupleArg);
template Arg::Arg(WmmaArg);
template Arg::Arg(WaitArg);
template Arg::Arg(TensorArg);
template Arg::Arg(HistoryArg);
template Arg::Arg(StoreArg);
template Arg::Arg(ShardingArg);
template Arg::Arg(CollectiveArg);

int64_t CollectiveArg::count() const {
  int64_t n = 1;
  for (const MeshAxis& m : along) n *= m.count;
  return n;
}

int64_t CollectiveArg::at(size_t shard) const {
  int64_t place = 0;
  for (const MeshAxis& m : along) place = place * m.count + m.at(shard);
  return place;
}

std::vector<size_t> CollectiveArg::line(size_t shard) const {
  for (const MeshAxis& m : along) shard -= size_t(m.at(shard) * m.stride);
  std::vector<size_t> out{shard};
  for (const MeshAxis& m : along) {
    std::vector<size_t> longer;
    for (size_t s : out)
      for (int32_t i = 0; i < m.count; ++i) longer.push_back(s + size_t(i * m.stride));
    out = std::move(longer);
  }
  return out;
}

}  // namespace tinygrad
