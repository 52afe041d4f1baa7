// Boost.JSON is built into the program once, here; everybody else includes <boost/json.hpp>.
#include <boost/json/src.hpp>
