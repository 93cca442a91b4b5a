#include "exec/nan_check.h"

#include <algorithm>
#include <cmath>

#include "tensor/dtype.h"
#include "tensor/float16.h"

namespace fleet {
namespace {

template <typename T, typename Word>
void scan(const void* data, int64_t count, Word exponent, NotFinite* found) {
  constexpr int64_t kBlock = 4096;  // elements; most blocks are all finite
  const T* values = static_cast<const T*>(data);
  const Word* words = static_cast<const Word*>(data);
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, count);
    if (!any_special(words + begin, end - begin, exponent)) continue;
    for (int64_t i = begin; i < end; ++i) {
      const auto value = static_cast<double>(values[i]);
      if (std::isfinite(value)) continue;
      if (found->count++ == 0) found->value = value;
    }
  }
}

void scan(DType dtype, const void* data, int64_t count, NotFinite* found) {
  switch (dtype) {
    case DType::kFloat32:
      return scan<float, uint32_t>(data, count, kFloat32Exponent, found);
    case DType::kFloat64:
      return scan<double, uint64_t>(data, count, kFloat64Exponent, found);
    case DType::kFloat16:
      return scan<Float16, uint16_t>(data, count, kFloat16Exponent, found);
    case DType::kBFloat16:
      return scan<BFloat16, uint16_t>(data, count, kBFloat16Exponent, found);
    default:
      FLEET_CHECK(false, "integers are always finite");
  }
}

}  // namespace

std::optional<NotFinite> find_not_finite(const Argument& argument, Device& device, Stream& stream) {
  constexpr size_t kChunk = size_t{8} << 20;  // bytes copied at a time
  std::vector<char> host(std::min(argument.bytes(), kChunk));
  NotFinite found;
  for (size_t at = 0; at < argument.bytes(); at += kChunk) {
    const size_t bytes = std::min(kChunk, argument.bytes() - at);
    device.copy(host.data(), argument.as<char>() + at, bytes, stream);
    stream.synchronize();
    scan(argument.dtype, host.data(), static_cast<int64_t>(bytes / size_of(argument.dtype)),
         &found);
  }
  if (found.count == 0) return std::nullopt;
  return found;
}

static bool scales_loss(const Program& program) {
  return std::any_of(program.ops().begin(), program.ops().end(),
                     [](const Op& op) { return op.type() == "check_finite_and_unscale"; });
}

Error not_finite_error(const Program& program, const Op& op, VarId output, const NotFinite& found,
                       const std::string& before, const StepInfo& info) {
  const Var& var = program.var(output);
  const char* value = std::isnan(found.value) ? "nan" : found.value > 0 ? "inf" : "-inf";
  std::string what = op.type() + " made '" + var.name + "' " + var.shape.text() + " " +
                     name_of(var.dtype) + " not finite (" + std::to_string(found.count) +
                     " elements, the first is " + value + ")";
  if (!before.empty()) what += "; its input '" + before + "' was not finite before";
  std::string next = "lower learning_rate.base, or look at the data";
  if (scales_loss(program)) next += ", or lower init_loss_scaling";
  // Not kUsage: training had begun, and a launcher must not take this for an invalid option.
  const char* run = info.sync       ? "sync after step "
                    : info.evaluate ? "evaluation after step "
                                    : "step ";
  return Error(ErrorCode::kInternal, what,
               run + std::to_string(info.step) + ", section " + program.sections()[op.section].name,
               next);
}

}  // namespace fleet
