#include "cli/doctor/file_checks.hpp"

#include "cli/settings/config_check.hpp"
#include "core/bytes/ascii.hpp"
#include "core/bytes/rfc3339.hpp"
#include "store/file_access.hpp"
#include "store/known_kinds.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace idem::cli::doctor {
namespace {

// Long enough for those who renew by hand, and less than what an ACME client renews early.
constexpr auto soon = std::chrono::days(30);

std::string date_of(std::int64_t seconds) {
  return to_rfc3339(StoreTime(std::chrono::seconds(seconds))).substr(0, 10);
}

std::string names_of(const http::Certificate& certificate) {
  std::string names;
  for (const auto& name : certificate.names) names += (names.empty() ? " for " : ", ") + name;
  return names.empty() ? " without names" : names;
}

void check_certificate_file(Findings& found, const std::string& what, const std::string& file,
                            const std::string& todo) {
  if (file.empty()) return;
  const std::string check = what + " " + file;
  const auto certificates = http::read_certificates(file);
  if (!certificates) {
    found.push_back(Finding::problem(check, certificates.error(),
                                     "write the path of a PEM file that this user may read"));
    return;
  }
  for (const auto& one : *certificates) {
    found.push_back(judge_certificate(check, one, now(), todo));
  }
}

/// That nobody else can read it, and that this user can.
void check_private_file(Findings& found, const std::string& what, const std::string& file) {
  if (file.empty()) return;
  const std::string check = what + " " + file;
  struct stat state{};
  if (::stat(file.c_str(), &state) != 0) {
    const int error = errno;
    const bool is_missing = error == ENOENT || error == ENOTDIR;
    found.push_back(Finding::problem(
        check, is_missing ? "it is not there" : "this user cannot look at it",
        is_missing ? "make it, or write another path" : words_on(error, file, file)));
    return;
  }
  if ((state.st_mode & (S_IROTH | S_IWOTH)) != 0) {
    found.push_back(Finding::problem(
        check,
        fmt::format("its mode is {:04o}: every user of this machine can read or change it",
                    state.st_mode & 07777),
        "chmod o= " + file + ", and renew what is in it if others use this machine"));
    return;
  }
  if (::access(file.c_str(), R_OK) != 0) {
    found.push_back(Finding::problem(
        check, with_advice(std::string("this user cannot read it: ") + std::strerror(errno), file),
        "run idem doctor as the gateway's user; if this is that user, do what the sentence says"));
    return;
  }
  found.push_back(Finding::ok(check, "no other user can read it"));
}

/// The files that options of a store's URL name, such as ca_file=/etc/idem/ca.pem.
void check_store_files(Findings& found, const std::string& url) {
  const KnownKind* const kind = known_kind_of(url);
  const auto query = url.find('?');
  if (kind == nullptr || query == url.npos) return;
  std::string_view rest = std::string_view(url).substr(query + 1);
  while (!rest.empty()) {
    const auto part = take_until(rest, '&');
    const auto equals = part.find('=');
    if (equals == part.npos) continue;
    const auto name = part.substr(0, equals);
    const std::string file(part.substr(equals + 1));
    if (std::ranges::find(kind->files, name) == kind->files.end()) continue;
    const bool is_secret = name.contains("pass") || name.contains("key");
    if (is_secret) {
      check_private_file(found, "secret of the store", file);
    } else if (!name.contains("crl")) {
      check_certificate_file(found, "certificate of the store", file,
                             "get the new one of the store's authority");
    }
  }
}

void check_secrets(Findings& found, const ReadSettings& read) {
  const auto add = [&](const char* what, const GivenList& files) {
    for (const Given& one : files.items) check_private_file(found, what, one.text);
  };
  add("secret", read.given.secret_files);
  add("secret of stored credentials", read.given.async_secret_files);
  add("encryption key", read.given.encryption_secret_files);
  check_private_file(found, "key", read.given.tls_key.text);
  check_private_file(found, "key of the admin listener", read.given.admin_tls_key.text);
  // The default is a place where tokens may be; without a file there are none.
  const std::string& tokens = read.options.login.tokens_file;
  if (read.given.admin_tokens.given || ::access(tokens.c_str(), F_OK) == 0) {
    check_private_file(found, "admin tokens", tokens);
  }
}

}  // namespace

Moment now() { return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now()); }

Finding judge_certificate(const std::string& check, const http::Certificate& certificate,
                          Moment now, const std::string& todo) {
  const std::int64_t at = now.time_since_epoch().count();
  const std::string ends = date_of(certificate.not_after);
  if (certificate.not_before > at) {
    return Finding::problem(
        check, fmt::format("it is valid from {} on only", date_of(certificate.not_before)),
        "look at this machine's clock, or use the certificate before it");
  }
  if (certificate.not_after <= at) {
    return Finding::problem(check, fmt::format("it ended on {}", ends), todo);
  }
  const auto days = (certificate.not_after - at) / (24L * 3600);
  if (days < soon.count()) {
    return Finding::warning(check, fmt::format("it ends on {}, in {} days", ends, days), todo);
  }
  return Finding::ok(check, fmt::format("valid until {}{}", ends, names_of(certificate)));
}

Findings check_files(const ReadSettings& read) {
  Findings found;
  Complaints wrong;
  check_named_files(read, wrong);
  for (const auto& line : wrong.lines()) {
    found.push_back(Finding::problem("files of the settings", line, "correct the setting"));
  }
  const auto& given = read.given;
  const char* const renew = "renew it, and reload the gateway (SIGHUP)";
  check_certificate_file(found, "certificate", given.tls_cert.text, renew);
  check_certificate_file(found, "certificate of the admin listener", given.admin_tls_cert.text,
                         renew);
  const char* const new_ca = "get the authority's new one, and restart the gateway";
  check_certificate_file(found, "CA of clients", given.tls_client_ca.text, new_ca);
  check_certificate_file(found, "CA of operators", given.admin_client_ca.text, new_ca);
  check_certificate_file(found, "CA of the upstream", given.upstream_ca.text, new_ca);
  check_certificate_file(found, "CA of the collector of traces", given.traces_ca.text, new_ca);
  check_private_file(found, "header of the collector of traces", given.traces_header_file.text);
  Complaints ignored;
  for (const auto& one : read_providers(given.providers, ignored)) {
    check_certificate_file(found, "CA of provider " + one.name.text, one.ca.text, new_ca);
    check_private_file(found, "credentials of provider " + one.name.text, one.auth_file.text);
    for (const Given& secret : one.event_secrets.items) {
      check_private_file(found, "secret of provider " + one.name.text, secret.text);
    }
  }
  for (const auto& one : read_destinations(given.destinations, ignored)) {
    check_certificate_file(found, "CA of destination " + one.name.text, one.ca.text, new_ca);
    for (const Given& secret : one.secret_files.items) {
      check_private_file(found, "secret of destination " + one.name.text, secret.text);
    }
  }
  check_store_files(found, read.options.store);
  check_secrets(found, read);
  return found;
}

}  // namespace idem::cli::doctor
