#include "base/error.h"
#include "base/text.h"
#include "cost/rates.h"

namespace fleet {
namespace {

constexpr double kTera = 1e12, kGiga = 1e9;
// Assumed fractions of the data sheet's figures. The one card that was measured, an H200, reached
// 890 of 989 TFLOP/s (0.90) and 4.02 of 4.8 TB/s (0.84): docs/performance/gpu.md.
constexpr double kProductFraction = 0.8, kMemoryFraction = 0.9;

struct Card {
  const char* name;
  const char* title;
  // From the data sheet. TFLOP/s of dense products in float16 or bfloat16, and in float32: used x
  // kProductFraction.
  double half, single;
  double memory;  // TB/s: used x kMemoryFraction
  double gigabytes;
  double link;  // GB/s of NCCL's all_reduce within a node
};

// Data sheets of NVIDIA. Links: 370 GB/s as reported for NCCL's ring on 8 x H100; others in
// proportion to their NVLink, or PCIe's.
constexpr Card kCards[] = {
    {"b200", "NVIDIA B200", 2250, 75, 8.0, 192, 740},
    {"h200", "NVIDIA H200", 989, 67, 4.8, 141, 370},
    {"h100", "NVIDIA H100 SXM", 989, 67, 3.35, 80, 370},
    {"a100", "NVIDIA A100 SXM 80 GB", 312, 19.5, 2.039, 80, 245},
    {"a100-40", "NVIDIA A100 SXM 40 GB", 312, 19.5, 1.555, 40, 245},
    {"v100", "NVIDIA V100 SXM2 32 GB", 125, 15.7, 0.9, 32, 123},
    {"l40s", "NVIDIA L40S", 362, 91.6, 0.864, 48, 20},
    {"l4", "NVIDIA L4", 121, 30.3, 0.3, 24, 20},
    {"a10", "NVIDIA A10", 125, 31.2, 0.6, 24, 20},
    {"t4", "NVIDIA T4", 65, 8.1, 0.32, 16, 10},
};

const Card& card_of(const std::string& wanted) {
  std::string name = lower_case(wanted);
  if (name.starts_with("nvidia ")) name = name.substr(7);
  for (const Card& card : kCards) {
    if (name == card.name) return card;
  }
  throw Error(ErrorCode::kUsage, "unknown card '" + wanted + "'", "--for",
              suggestion(name, card_names()));
}

}  // namespace

std::vector<std::string> card_names() {
  std::vector<std::string> names;
  for (const Card& card : kCards) names.emplace_back(card.name);
  return names;
}

std::optional<double> data_sheet_peak(const std::string& device, DType dtype) {
  std::string name = lower_case(device);
  if (name.starts_with("nvidia ")) name = name.substr(7);
  name = name.substr(0, name.find_first_of(" -"));
  for (const Card& card : kCards) {
    if (name != card.name) continue;
    if (dtype == DType::kFloat32) return card.single * kTera;
    if (dtype == DType::kFloat16 || dtype == DType::kBFloat16) return card.half * kTera;
  }
  return std::nullopt;
}

MachineRates rates_of_card(const std::string& name) {
  const Card& card = card_of(name);
  MachineRates rates{.device = card.title,
                     .origin = "data sheet x 0.8 for products, x 0.9 for memory",
                     .estimate = true};
  const double half = card.half * kTera * kProductFraction;
  rates.peak = {
      {"float16", half},
      {"bfloat16", half},
      {"float32", card.single * kTera * kProductFraction},
      {kDepthwise, card.single * kTera * kProductFraction}};  // in float32, without tensor cores
  rates.bytes_per_second = card.memory * kTera * kMemoryFraction;
  rates.op_seconds = 2e-6;     // between two kernels of a graph
  rates.step_seconds = 20e-6;  // one launch
  rates.memory_bytes = card.gigabytes * kGiga;
  rates.idle_factor = 1;  // NCCL leaves nearly all multiprocessors to the computation
  return rates;
}

double card_link_bytes(const std::string& name) { return card_of(name).link * kGiga; }

}  // namespace fleet
