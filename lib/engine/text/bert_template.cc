#include "text/bert_template.h"

namespace fleet::text {
namespace {

Json piece(const char* kind, const std::string& id, int64_t segment) {
  return Json(std::map<std::string, Json>{{kind, Json({{"id", id}, {"type_id", segment}})}});
}

Json special(const NamedToken& token) {
  return {{"id", token.name},
          {"ids", Json::array({Json(token.id)})},
          {"tokens", Json::array({Json(token.name)})}};
}

}  // namespace

Json bert_template(const NamedToken& cls, const NamedToken& sep) {
  const Json start = piece("SpecialToken", cls.name, 0), stop = piece("SpecialToken", sep.name, 0);
  const Json first = piece("Sequence", "A", 0);
  return {{"type", "TemplateProcessing"},
          {"single", Json::array({start, first, stop})},
          {"pair", Json::array({start, first, stop, piece("Sequence", "B", 1),
                                piece("SpecialToken", sep.name, 1)})},
          {"special_tokens",
           Json(std::map<std::string, Json>{{cls.name, special(cls)}, {sep.name, special(sep)}})}};
}

}  // namespace fleet::text
