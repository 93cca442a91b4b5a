// Boost.Asio's functions, compiled once: headers that define them everywhere cost each file that
// uses Asio two seconds (BOOST_ASIO_SEPARATE_COMPILATION, see CMakeLists.txt).
#include <boost/asio/impl/src.hpp>
