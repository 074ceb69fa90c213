// The step's loops once for every instruction set: Highway compiles this file again for each of them and picks at run
// time. step_reference.h says what is computed; the vector loops do the same operations in the same order, and what
// does not fill a vector goes through the reference's own code.
#include "server/kernels/step_kernels.h"

#include <algorithm>
#include <cstdint>

#include "server/kernels/step_reference.h"

// Vectors whose length is not known when compiling cannot stand in arrays.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "server/kernels/step_kernels.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace autoloco::server {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using F64 = hn::ScalableTag<double>;
using F32 = hn::Rebind<float, F64>;  // as many values as fit when widened
constexpr std::size_t kLanes = hn::MaxLanes(F64());
constexpr std::size_t kGroups = kStatisticLanes / kLanes;
static_assert(kStatisticLanes % kLanes == 0);

// kStatisticLanes partial sums of squares.
struct Squares {
  hn::VFromD<F64> groups[kGroups];

  HWY_INLINE void Clear() {
    for (auto& group : groups) group = hn::Zero(F64());
  }
  HWY_INLINE void Add(std::size_t group, hn::VFromD<F32> values) {
    const auto wide = hn::PromoteTo(F64(), values);
    groups[group] = hn::Add(groups[group], hn::Mul(wide, wide));
  }
  HWY_INLINE void Store(double* lanes) const {
    for (std::size_t group = 0; group < kGroups; ++group) hn::StoreU(groups[group], F64(), lanes + group * kLanes);
  }
};

template <StepForm kForm, bool kView>
StepSums Step(const StepScalars& scalars, const StepBlock& block) {
  constexpr F32 kF32;
  const auto factor = hn::Set(kF32, scalars.mean_factor);
  const auto eta = hn::Set(kF32, scalars.eta);
  const auto mu = hn::Set(kF32, scalars.mu);
  const auto a = hn::Set(kF32, scalars.a);
  const auto c = hn::Set(kF32, scalars.c);
  const auto p = hn::Set(kF32, scalars.p);
  const auto g = hn::Set(kF32, scalars.g);
  Squares means;
  Squares momenta;
  Squares params;
  means.Clear();
  momenta.Clear();
  params.Clear();
  const std::size_t full = block.count / kStatisticLanes * kStatisticLanes;
  for (std::size_t i = 0; i < full; i += kStatisticLanes) {
    for (std::size_t group = 0; group < kGroups; ++group) {
      const std::size_t at = i + group * kLanes;
      const auto d = hn::Mul(hn::LoadU(kF32, block.sum + at), factor);
      const auto old = hn::LoadU(kF32, block.momentum + at);
      hn::VFromD<F32> b;
      hn::VFromD<F32> step;
      if constexpr (kForm == StepForm::kCorrected) {
        step = hn::Add(hn::Mul(a, d), hn::Mul(c, old));
        b = hn::Add(hn::Mul(p, old), hn::Mul(g, d));
      } else {
        b = hn::Add(hn::Mul(mu, old), d);
        step = kForm == StepForm::kNesterov ? hn::Add(d, hn::Mul(mu, b)) : b;
      }
      const auto theta = hn::Sub(hn::LoadU(kF32, block.params + at), hn::Mul(eta, step));
      hn::StoreU(b, kF32, block.momentum + at);
      hn::StoreU(theta, kF32, block.params + at);
      if constexpr (kView) hn::StoreU(hn::Sub(theta, hn::LoadU(kF32, block.view + at)), kF32, block.sum + at);
      means.Add(group, d);
      momenta.Add(group, b);
      params.Add(group, theta);
    }
  }
  StepLanes lanes;
  means.Store(lanes.mean);
  momenta.Store(lanes.momentum);
  params.Store(lanes.params);
  StepValues<kForm, kView>(scalars, block, full, block.count, &lanes);
  return lanes.InOrder();
}

void Scale(float factor, float* values, std::size_t count) {
  constexpr hn::ScalableTag<float> kTag;
  constexpr std::size_t kWidth = hn::MaxLanes(kTag);
  const auto factors = hn::Set(kTag, factor);
  std::size_t i = 0;
  for (; i + kWidth <= count; i += kWidth) hn::StoreU(hn::Mul(hn::LoadU(kTag, values + i), factors), kTag, values + i);
  for (; i < count; ++i) values[i] *= factor;
}

// One range.
void RemoveEchoOf(float mean_factor, const StepBlock& block, std::size_t begin, std::size_t end) {
  constexpr F32 kF32;
  constexpr F64 kF64;
  const auto factor = hn::Set(kF32, mean_factor);
  const std::size_t full = begin + (end - begin) / kStatisticLanes * kStatisticLanes;
  hn::VFromD<F64> products[kGroups];
  Squares squares;
  squares.Clear();
  for (auto& product : products) product = hn::Zero(kF64);
  for (std::size_t i = begin; i < full; i += kStatisticLanes) {
    for (std::size_t group = 0; group < kGroups; ++group) {
      const std::size_t at = i + group * kLanes;
      const auto d = hn::Mul(hn::LoadU(kF32, block.sum + at), factor);
      const auto e = hn::Sub(hn::LoadU(kF32, block.view + at), hn::LoadU(kF32, block.params + at));
      hn::StoreU(d, kF32, block.sum + at);
      products[group] = hn::Add(products[group], hn::Mul(hn::PromoteTo(kF64, d), hn::PromoteTo(kF64, e)));
      squares.Add(group, e);
    }
  }
  EchoLanes lanes;
  for (std::size_t group = 0; group < kGroups; ++group) hn::StoreU(products[group], kF64, lanes.products + group * kLanes);
  squares.Store(lanes.squares);
  MeasureEcho(mean_factor, block, full, end, &lanes);
  const float share = lanes.Factor(end - begin);
  const auto shares = hn::Set(kF32, share);
  for (std::size_t i = begin; i < full; i += kLanes) {
    const auto e = hn::Sub(hn::LoadU(kF32, block.view + i), hn::LoadU(kF32, block.params + i));
    hn::StoreU(hn::Sub(hn::LoadU(kF32, block.sum + i), hn::Mul(shares, e)), kF32, block.sum + i);
  }
  SubtractEcho(share, block, full, end);
}

void RemoveEcho(float mean_factor, const StepBlock& block) {
  for (std::size_t begin = 0; begin < block.count; begin += kEchoRange) {
    RemoveEchoOf(mean_factor, block, begin, std::min(begin + kEchoRange, block.count));
  }
}

StepKernels MakeKernels() {
  StepKernels kernels;
  kernels.name = hwy::TargetName(HWY_TARGET);
  kernels.step[0] = {&Step<StepForm::kNesterov, false>, &Step<StepForm::kNesterov, true>};
  kernels.step[1] = {&Step<StepForm::kMomentum, false>, &Step<StepForm::kMomentum, true>};
  kernels.step[2] = {&Step<StepForm::kCorrected, false>, &Step<StepForm::kCorrected, true>};
  kernels.scale = &Scale;
  kernels.remove_echo = &RemoveEcho;
  return kernels;
}

}  // namespace HWY_NAMESPACE
}  // namespace autoloco::server
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace autoloco::server {
namespace {

HWY_EXPORT(MakeKernels);

// One table an instruction set, best last. Each is asked for by name, past Highway's own choice, which is global.
std::vector<StepKernels> MakeTables() {
  std::vector<StepKernels> tables = {ReferenceStepKernels()};
  const std::vector<std::int64_t> targets = hwy::SupportedAndGeneratedTargets();  // best first
  for (auto target = targets.rbegin(); target != targets.rend(); ++target) {
    hwy::ChosenTarget chosen;
    chosen.Update(*target);
    tables.push_back((*HWY_DISPATCH_TABLE(MakeKernels)[chosen.GetIndex()])());
  }
  return tables;
}

const std::vector<StepKernels>& Tables() {
  static const std::vector<StepKernels> tables = MakeTables();
  return tables;
}

}  // namespace

const StepKernels& BestStepKernels() { return Tables().back(); }

std::vector<const StepKernels*> AllStepKernels() {
  std::vector<const StepKernels*> all;
  for (const StepKernels& kernels : Tables()) all.push_back(&kernels);
  return all;
}

}  // namespace autoloco::server
#endif  // HWY_ONCE
