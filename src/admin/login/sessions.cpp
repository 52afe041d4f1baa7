#include "admin/login/sessions.hpp"

#include "core/bytes/ascii.hpp"

#include <idem/console_limits.hpp>
#include <idem/fingerprint.hpp>

#include <algorithm>
#include <iterator>

namespace idem::admin {
namespace {

std::string random_text() {
  Digest bytes{};
  random_bytes(bytes);
  return to_hex(bytes);
}

}  // namespace

std::string Sessions::begin(Caller caller, MonotonicTime now) {
  const std::string id = random_text();
  caller.in_session = true;
  const auto token = caller.token;
  sessions_.push_front({sha256(id), {std::move(caller), random_text()}, now, now});
  by_id_[sessions_.front().id] = sessions_.begin();
  drop_beyond_limits(token);
  return id;
}

void Sessions::drop_beyond_limits(const std::optional<Digest>& token) {
  std::size_t of_token = 0;
  auto last_of_token = sessions_.end();
  for (auto at = sessions_.begin(); at != sessions_.end(); ++at) {
    if (at->session.caller.token != token) continue;
    ++of_token;
    last_of_token = at;
  }
  auto dropped = sessions_.end();
  if (of_token > limits::console_sessions_of_token_max) {
    dropped = last_of_token;
  } else if (sessions_.size() > limits::console_sessions_max) {
    dropped = std::prev(sessions_.end());
  }
  if (dropped == sessions_.end()) return;
  by_id_.erase(dropped->id);
  sessions_.erase(dropped);
}

const Session* Sessions::find(std::string_view id, MonotonicTime now) {
  const auto found = by_id_.find(sha256(id));
  if (found == by_id_.end()) return nullptr;
  const auto at = found->second;
  const bool is_over =
      now - at->begun >= limits::console_session_max || now - at->used >= limits::console_idle_max;
  if (is_over) {
    by_id_.erase(found);
    sessions_.erase(at);
    return nullptr;
  }
  at->used = now;
  sessions_.splice(sessions_.begin(), sessions_, at);
  return &at->session;
}

void Sessions::end(std::string_view id) {
  const auto found = by_id_.find(sha256(id));
  if (found == by_id_.end()) return;
  sessions_.erase(found->second);
  by_id_.erase(found);
}

std::string Sessions::make_code(Caller caller, MonotonicTime now) {
  std::erase_if(codes_,
                [&](const auto& one) { return now - one.second.made >= limits::console_code_max; });
  const auto oldest_of = [&](const auto& is_meant) {
    auto oldest = codes_.end();
    for (auto at = codes_.begin(); at != codes_.end(); ++at) {
      if (!is_meant(at->second)) continue;
      if (oldest == codes_.end() || at->second.made < oldest->second.made) oldest = at;
    }
    return oldest;
  };
  const auto is_of_token = [&](const Code& one) { return one.caller.token == caller.token; };
  const auto of_token =
      std::ranges::count_if(codes_, [&](const auto& one) { return is_of_token(one.second); });
  if (static_cast<std::size_t>(of_token) >= limits::console_codes_of_token_max) {
    codes_.erase(oldest_of(is_of_token));
  } else if (codes_.size() >= limits::console_codes_max) {
    codes_.erase(oldest_of([](const Code&) { return true; }));
  }
  std::string code = random_text();
  codes_[sha256(code)] = {std::move(caller), now};
  return code;
}

std::optional<Caller> Sessions::redeem(std::string_view code, MonotonicTime now) {
  const auto found = codes_.find(sha256(code));
  if (found == codes_.end()) return std::nullopt;
  const Code made = std::move(found->second);
  codes_.erase(found);
  if (now - made.made >= limits::console_code_max) return std::nullopt;
  return made.caller;
}

std::string cookie_name_at(std::string_view host) {
  const auto colon = host.rfind(':');
  const bool has_port = colon != host.npos && host.find(']', colon) == host.npos;
  // Browsers keep a name with this prefix only with Secure, Path=/ and without Domain.
  return "__Host-idem" + (has_port ? "-" + std::string(host.substr(colon + 1)) : std::string());
}

std::optional<std::string_view> cookie_in(std::string_view field, std::string_view name) noexcept {
  std::optional<std::string_view> found;
  while (!field.empty()) {
    const auto pair = take_until(field, ';');
    const auto equals = pair.find('=');
    if (equals == pair.npos || trimmed(pair.substr(0, equals)) != name) continue;
    if (found) return std::nullopt;
    found = trimmed(pair.substr(equals + 1));
  }
  return found;
}

std::string session_cookie(std::string_view name, std::string_view id) {
  return std::string(name) + '=' + std::string(id) + "; Path=/; Secure; HttpOnly; SameSite=Strict" +
         (id.empty() ? "; Max-Age=0" : "");
}

}  // namespace idem::admin
