// Precision, recall and F1 as scikit-learn averages them over classes.
#include "models/named_metrics.h"

namespace fleet {
namespace {

using Average = ClassScores (*)(const ClassTotals&);
using Part = double ClassScores::*;

ClassScores macro_of_seen(const ClassTotals& totals) { return macro_scores(totals, true); }
ClassScores macro_of_all(const ClassTotals& totals) { return macro_scores(totals, false); }

// The average over the classes of samples with one class each, and with several.
void define_average(NamedMetric* def, Part part, Average of_classes, Average of_labels) {
  def->of_classes = [=](const ClassPairs& pairs) { return of_classes(totals_of(pairs)).*part; };
  def->of_labels = [=](const LabelCounts& counts) { return of_labels(counts.totals).*part; };
}

void define_binary(NamedMetric* def, Part part) {
  def->binary = true;
  def->of_classes = [=](const ClassPairs& pairs) {
    return scores_of_class(totals_of(pairs), 1).*part;
  };
}

}  // namespace

FLEET_METRIC(precision) {
  def.help = "precision of class 1 of two classes";
  define_binary(&def, &ClassScores::precision);
}

FLEET_METRIC(recall) {
  def.help = "recall of class 1 of two classes";
  define_binary(&def, &ClassScores::recall);
}

FLEET_METRIC(macro_precision) {
  def.help = "mean precision of the classes that occur";
  define_average(&def, &ClassScores::precision, macro_of_seen, macro_of_all);
}

FLEET_METRIC(macro_recall) {
  def.help = "mean recall of the classes that occur";
  define_average(&def, &ClassScores::recall, macro_of_seen, macro_of_all);
}

FLEET_METRIC(macro_f1) {
  def.help = "mean F1 of the classes that occur";
  define_average(&def, &ClassScores::f1, macro_of_seen, macro_of_all);
}

FLEET_METRIC(weighted_precision) {
  def.help = "mean precision of the classes, by their samples";
  define_average(&def, &ClassScores::precision, weighted_scores, weighted_scores);
}

FLEET_METRIC(weighted_recall) {
  def.help = "mean recall of the classes, by their samples";
  define_average(&def, &ClassScores::recall, weighted_scores, weighted_scores);
}

FLEET_METRIC(weighted_f1) {
  def.help = "mean F1 of the classes, by their samples";
  define_average(&def, &ClassScores::f1, weighted_scores, weighted_scores);
}

FLEET_METRIC(micro_precision) {
  def.help = "precision of all predictions together; the accuracy, if a sample has one class";
  define_average(&def, &ClassScores::precision, micro_scores, micro_scores);
}

FLEET_METRIC(micro_recall) {
  def.help = "recall of all labels together; the accuracy, if a sample has one class";
  define_average(&def, &ClassScores::recall, micro_scores, micro_scores);
}

FLEET_METRIC(micro_f1) {
  def.help = "F1 of all labels together; the accuracy, if a sample has one class";
  define_average(&def, &ClassScores::f1, micro_scores, micro_scores);
}

}  // namespace fleet
