#include "backend/cpu/dnnl_glue.h"
#include "backend/cpu/rows.h"

namespace fleet {
namespace {

struct Part {
  const char* data;
  int64_t bytes, offset;  // per row
};

// Blocks must not contain channels of two inputs.
bool all_fit(const LayoutQuery& query, const Layout& pattern, int axis) {
  const int64_t block = cpu::Rows(pattern, axis).block;
  for (int i = 0; i < query.input_count(); ++i) {
    if (query.input_var(i).shape[axis] % block != 0) return false;
  }
  return true;
}

// The layout that most elements have already.
void layouts(LayoutQuery& query) {
  const auto axis = static_cast<int>(query.attributes().integer("axis"));
  const Shape& y = query.output_var(0).shape;
  std::vector<std::pair<Layout, int64_t>> found;  // as the output's layout, elements
  for (int i = 0; i < query.input_count(); ++i) {
    const Shape& shape = query.input_var(i).shape;
    const auto pattern = cpu::row_pattern(query.input(i), shape, axis);
    if (!pattern || !all_fit(query, *pattern, axis)) continue;
    const Layout whole = cpu::layout_like(*pattern, y);
    auto same = std::find_if(found.begin(), found.end(),
                             [&](const auto& entry) { return entry.first == whole; });
    if (same == found.end()) same = found.insert(found.end(), {whole, 0});
    same->second += shape.elements();
  }
  const auto most = std::max_element(
      found.begin(), found.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == found.end()) return;
  for (int i = 0; i < query.input_count(); ++i) {
    query.need(i, cpu::layout_like(most->first, query.input_var(i).shape));
  }
  query.give(0, most->first);
}

}  // namespace

FLEET_KERNEL(cpu, concat) {
  def.dtypes = cpu::kAllTypes;
  def.layouts = layouts;
  def.create = [](KernelContext& context) {
    const auto axis = static_cast<int>(context.attributes().integer("axis"));
    const auto size = static_cast<int64_t>(size_of(context.outputs[0].dtype));
    std::vector<Part> parts;
    int64_t offset = 0;
    for (const Argument& input : context.inputs) {
      const int64_t bytes = cpu::Rows(input.layout, axis).row * size;
      parts.push_back({input.as<char>(), bytes, offset});
      offset += bytes;
    }
    char* y = context.outputs[0].as<char>();
    const int64_t count = cpu::Rows(context.outputs[0].layout, axis).count;
    return make_kernel([=](Stream&) {
      for (const Part& part : parts) {
        cpu::copy_rows(count, part.bytes, part.data, part.bytes, y + part.offset, offset);
      }
    });
  };
}

}  // namespace fleet
