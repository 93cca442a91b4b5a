// Programs that link libfleetrun reach their job's Store through the rendezvous.
#include "store/store.h"

#include "rendezvous/store_client.h"

namespace fleet {

static const bool installed = (set_store_connector(connect_store_from_env), true);

}  // namespace fleet
