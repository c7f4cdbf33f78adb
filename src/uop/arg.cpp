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

}  // namespace tinygrad
