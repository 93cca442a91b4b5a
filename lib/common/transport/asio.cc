// Boost.Asio's functions, compiled once (BOOST_ASIO_SEPARATE_COMPILATION, see CMakeLists.txt). If
// its headers defined them, each file that uses Asio would take two seconds longer to compile.
#include <boost/asio/impl/src.hpp>
#include <boost/asio/ssl/impl/src.hpp>
