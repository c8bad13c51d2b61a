// Boost.Asio 1.74, the parts the daemon uses. Its headers use std::exchange without including <utility>, which g++ 12
// forgives only when somebody included it before: every user goes through this header.
#pragma once

#include <utility>  // first, see above

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/datagram_protocol.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>

namespace jitc::service {

namespace asio = boost::asio;

}  // namespace jitc::service
