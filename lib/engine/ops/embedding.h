// Annotations of embeddings: gradients that have only the rows of a step, and tables.
#pragma once

namespace fleet {

// The annotation of an embedding_grad whose embedding is sparse.
inline constexpr char kSparseGradient[] = "@sparse";

// The annotation of an embedding that looks up a table (Network::table()): its name. A strategy may
// keep the rows of such a table elsewhere, and feed those that a step reads.
inline constexpr char kTable[] = "@table";

}  // namespace fleet
