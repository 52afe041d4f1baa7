#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/bytes/ascii.hpp"
#include "support/admin.hpp"
#include "support/certificates.hpp"
#include "support/live.hpp"
#include "support/postgres.hpp"
#include "support/redis.hpp"
#include "support/socket.hpp"

/// `idem doctor` on real parties: each finding is provoked, and says what to do.
namespace idem::test {
namespace {

namespace fs = std::filesystem;

struct Diagnosis {
  int exit_code = -1;
  std::string output;
  Json checks;

  /// The first finding of this check; without one, its result is empty.
  Json of(std::string_view check) const {
    for (const Json& one : checks.items) {
      if (one["check"].string.starts_with(check)) return one;
    }
    return {};
  }
};

class DoctorCommand : public testing::Test {
 protected:
  void SetUp() override { IDEM_NEED_PROGRAM("idem"); }

  std::string file(const std::string& name) const { return dir_.path() / name; }
  std::string store() const { return "sqlite:" + file("idem.db"); }
  /// `rest`: more settings, a line each.
  std::string config(const std::string& upstream, const std::string& rest,
                     const std::string& url = {}) const {
    std::ofstream(file("idem.yaml"))
        << "upstream: {url: \"" << upstream << "\"}\n"
        << "scope: {from: \"header:X-Tenant-Id\", trust_header: true}\n"
        << "store: \"" << (url.empty() ? store() : url) << "\"\n"
        << rest;
    return file("idem.yaml");
  }
  static Diagnosis diagnose(const std::string& config, const std::string& shell = {}) {
    const Ran ran =
        shell.empty()
            ? run_program(built_program("idem"), {"doctor", "--config", config, "--json"})
            : run_program("/bin/sh", {"-c", shell + " exec \"$0\" doctor --config \"$1\" --json",
                                      built_program("idem"), config});
    const auto begin = ran.output.find("{\"checks\"");
    const auto json =
        begin == std::string::npos ? std::nullopt : parse_json(ran.output.substr(begin));
    return {ran.exit_code, ran.output, json.value_or(Json{})["checks"]};
  }
  static void expect(const Diagnosis& diagnosis, std::string_view check, std::string_view result,
                     std::string_view what, std::string_view todo = {}) {
    const Json one = diagnosis.of(check);
    EXPECT_EQ(one["result"].string, result) << check << "\n" << diagnosis.output;
    EXPECT_NE(one["finding"].string.find(what), std::string::npos) << one["finding"].string;
    EXPECT_NE(one["do"].string.find(todo), std::string::npos) << one["do"].string;
    if (result == "problem") {
      EXPECT_EQ(diagnosis.exit_code, 1) << check;
    }
  }

  TempDir dir_;
  Provider provider_;
};

TEST_F(DoctorCommand, a_gateway_that_serves_is_fine_and_stays_as_it_is) {
  for (const std::string scheme : {"sqlite", "embedded"}) {
    SCOPED_TRACE(scheme);
    const std::string url = scheme + ":" + file("idem." + scheme);
    const Gateway gateway({.upstream = provider_.address(), .store_url = url});
    ASSERT_TRUE(gateway.running());
    const auto answer = send_once(gateway.address(), charge(scheme));
    ASSERT_EQ(answer.status, 201);
    const auto found = diagnose(
        config("http://" + provider_.address(),
               "listen: " + gateway.address() + "\nadmin: " + gateway.admin() + "\n", url));
    EXPECT_EQ(found.exit_code, 0) << found.output;
    expect(found, "store", "ok", file("idem." + scheme) + " is store ");
    expect(found, "store file", "ok", "only its owner");
    expect(found, "upstream", "ok", "answers");
    expect(found, "listener", "ok", "a gateway listens on");
    expect(found, "admin listener", "ok", "a gateway listens on");
    expect(found, "admin exposure", "ok", "only this machine");
    EXPECT_TRUE(replays(answer, send_once(gateway.address(), charge(scheme))));
    EXPECT_EQ(provider_.of_key(scheme).arrivals, 1);
  }
}

TEST_F(DoctorCommand, a_log_that_is_not_there_or_has_other_settings_is_named) {
  const std::string url = "embedded:" + file("idem.log");
  const std::string upstream = "http://" + provider_.address();
  expect(diagnose(config(upstream, "", url)), "store", "warning", "a start makes a new store");
  EXPECT_FALSE(fs::exists(file("idem.log"))) << "it makes nothing";
  {
    const Gateway gateway({.upstream = provider_.address(), .store_url = url});
    ASSERT_TRUE(gateway.running());
    ASSERT_EQ(send_once(gateway.address(), charge("k")).status, 201);
  }
  expect(diagnose(config(upstream, "store_id: 00000000-0000-4000-8000-000000000000\n", url)),
         "store", "problem", "and store_id wants", "do what the sentence says");
  expect(diagnose(config(upstream, "key: {scope: tenant}\n", url)), "store", "problem", "scope",
         "do what the sentence says");
  fs::permissions(file("idem.log"), fs::perms(0750));
  expect(diagnose(config(upstream, "", url)), "store file", "problem", "0750", "chmod 0700");
}

TEST_F(DoctorCommand, what_is_not_there_is_named) {
  const std::string closed = unused_address();
  std::ofstream(file("secret")) << "whsec_" << "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n";
  fs::permissions(file("secret"), fs::perms(0600));
  const auto found = diagnose(config(
      "http://" + closed,
      fmt::format("listen: {}\n"
                  "providers: [{{name: bank, url: \"http://{}/charges?operation={{operation}}\", "
                  "found: [2xx]}}]\n"
                  "destinations: [{{name: mail, url: \"http://{}/in\", deduplicates: 1h, "
                  "secret_files: [{}]}}]\n"
                  "traces: {{url: \"http://{}/v1/traces\"}}\n",
                  provider_.address(), closed, closed, file("secret"), closed)));
  expect(found, "collector of traces", "warning", "spans are lost meanwhile", "start it");
  expect(found, "upstream", "problem", closed + " cannot be reached: Connection refused",
         "start it");
  expect(found, "provider bank", "problem", "cannot be reached", "start it");
  expect(found, "destination mail", "problem", "cannot be reached", "start it");
  expect(found, "secret of destination mail", "ok", "no other user");
  expect(found, "store", "warning", "a start makes a new store", "the path of their store");
  expect(found, "listener", "warning", "is in use", "end that process");
  expect(found, "admin listener", "warning", "there is none", "set admin");
  EXPECT_FALSE(fs::exists(file("idem.db"))) << "it makes nothing";
  expect(diagnose(config("http://" + closed,
                         "listen: 127.0.0.1:0\nadmin: " + provider_.address() + "\n")),
         "admin listener", "warning", "is in use", "end that process");
  const auto elsewhere =
      diagnose(config("http://" + std::string(64, 'a') + ".test", "listen: 192.0.2.1:8080\n"));
  expect(elsewhere, "upstream", "problem", "has no address", "correct the name");
  expect(elsewhere, "listener", "problem", "no interface of this machine", "0.0.0.0");
  const auto refused = diagnose(config("ftp://x", ""));
  EXPECT_EQ(refused.exit_code, 2) << refused.output;
}

TEST_F(DoctorCommand, certificates_and_keys_are_read) {
  Authority authority(dir_.path(), "doctor");
  const auto ended =
      authority.issue({.common_name = "api", .other_names = {"IP:127.0.0.1"}, .expired = true});
  const auto good =
      authority.issue({.common_name = "api", .other_names = {"IP:127.0.0.1", "DNS:localhost"}});
  const auto serve = [&](const Authority::Files& files) {
    return Gateway({.upstream = provider_.address(),
                    .store_url = "sqlite:" + files.certificate + ".db",
                    .flags = {"--tls-cert", files.certificate, "--tls-key", files.key}});
  };
  fs::permissions(ended.key, fs::perms(0644));
  fs::permissions(good.key, fs::perms(0600));
  const auto diagnose_tls = [&](const Gateway& upstream, const Authority::Files& own,
                                const std::string& ca) {
    std::ofstream(file("idem.yaml"))
        << "upstream: {url: \"https://" << upstream.address() << "\"" << ca << "}\n"
        << "scope: {from: \"header:X-Tenant-Id\", trust_header: true}\nlisten: 127.0.0.1:0\n"
        << "store: \"" << store() << "\"\ntls: {cert: " << own.certificate << ", key: " << own.key
        << "}\n";
    return diagnose(file("idem.yaml"));
  };
  const std::string ca = ", ca: " + authority.file();
  {
    const Gateway upstream = serve(ended);
    const auto found = diagnose_tls(upstream, ended, ca);
    expect(found, "upstream", "problem", "TLS fails: certificate has expired",
           "renew the certificate");
    expect(found, "upstream certificate", "problem", "it ended on", "its owner has to renew it");
    expect(found, "certificate " + ended.certificate, "problem", "it ended on", "SIGHUP");
    expect(found, "key " + ended.key, "problem", "its mode is 0644", "chmod o= " + ended.key);
    expect(found, "CA of the upstream", "warning", "it ends on", "the authority's new one");
  }
  const Gateway upstream = serve(good);
  const auto found = diagnose_tls(upstream, good, ca);
  expect(found, "upstream", "ok", "with TLS");
  expect(found, "upstream certificate", "warning", "it ends on ", "renew");
  expect(found, "certificate " + good.certificate, "warning", "it ends on ", "renew it");
  expect(found, "key " + good.key, "ok", "no other user");
  const auto strange = diagnose_tls(upstream, good, "");
  expect(strange, "upstream", "problem", "TLS fails: ", "`ca` has to name its authority");
  const auto mixed = diagnose_tls(upstream, {good.certificate, ended.key}, ca);
  expect(mixed, "files of the settings", "problem", "key values mismatch", "correct the setting");
  std::ofstream(file("idem.yaml"))
      << "upstream: {url: \"https://" << provider_.address() << "\"}\nlisten: 127.0.0.1:0\n"
      << "scope: {from: \"header:X-Tenant-Id\", trust_header: true}\nstore: \"" << store()
      << "\"\n";
  expect(diagnose(file("idem.yaml")), "upstream", "problem", "TLS fails: ", "http://");
}

TEST_F(DoctorCommand, the_machine_and_the_file_of_the_store_are_looked_at) {
  const auto settings = config("http://" + provider_.address(), "listen: 127.0.0.1:0\n");
  Gateway gateway({.upstream = provider_.address(), .store_url = store()});
  ASSERT_TRUE(gateway.running());
  fs::permissions(file("idem.db"), fs::perms(0644));
  expect(diagnose(settings), "store file", "problem", "is 0644", "chmod 0600");
  const auto small = diagnose(settings, "ulimit -n 64;");
  expect(small, "open files", "warning", "may have 64 open files", "LimitNOFILE=");
  expect(diagnose(settings, "ulimit -f 8;"), "file size", "problem", "RLIMIT_FSIZE",
         "LimitFSIZE=infinity");
  const auto pinned =
      diagnose(config("http://" + provider_.address(),
                      "listen: 127.0.0.1:0\nstore_id: 00000000-0000-4000-8000-000000000000\n"));
  expect(pinned, "store", "problem", "and store_id wants", "do what the sentence says");
  const auto of_store = [&](const std::string& rest) {
    return config("http://" + provider_.address(), "listen: 127.0.0.1:0\n" + rest);
  };
  std::string id = diagnose(of_store("")).of("store")["finding"].string;
  id = upper_case(id.substr(id.find(" is store ") + 10, 36));
  expect(diagnose(of_store("store_id: " + id + "\n")), "store", "ok", " is store ");
  of_store("");
  ASSERT_EQ(gateway.terminate(), 0);
  expect(diagnose(settings, "ulimit -f 8;"), "store", "problem", "disk is full for this process",
         "do what the sentence says");
  std::ofstream(file("idem.db")) << std::string(4'096, 'x');
  expect(diagnose(settings), "store", "problem", "is not a database", "do what the sentence says");
  if (::geteuid() != 0) GTEST_SKIP() << "the rest needs root, for a mount of its own";
  fs::create_directory(file("disk"));
  const auto on_disk = config("http://" + provider_.address(), "listen: 127.0.0.1:0\n",
                              "sqlite:" + file("disk") + "/idem.db");
  const auto mounted = [&](const std::string& options) {
    const Ran ran =
        run_program("/usr/bin/unshare", {"-m", "/bin/sh", "-c",
                                         "mount -t tmpfs -o " + options +
                                             " none \"$2\" && exec \"$0\" doctor --config \"$1\" "
                                             "--json",
                                         built_program("idem"), on_disk, file("disk")});
    const auto begin = ran.output.find("{\"checks\"");
    const auto json =
        begin == std::string::npos ? std::nullopt : parse_json(ran.output.substr(begin));
    return Diagnosis{ran.exit_code, ran.output, json.value_or(Json{})["checks"]};
  };
  const auto full = mounted("size=1M");
  expect(full, "disk of the store", "problem", "are free: a store that cannot write", "free room");
  expect(full, "disk of the store (" + file("disk") + ") file system", "warning",
         "it lies in memory", "put the store on a disk");
  expect(mounted("size=1M,ro"), "disk of the store", "problem", "read-only", "for writing");
}

TEST_F(DoctorCommand, the_settings_of_a_server_are_those_that_a_start_looks_at) {
  const TestDatabase database;
  const auto settings = [&](const std::string& url) {
    return config("http://" + provider_.address(), "listen: 127.0.0.1:0\n", url);
  };
  expect(diagnose(settings(database.uri())), "store", "problem", "", "docs/stores.md");
  {
    Gateway gateway({.upstream = provider_.address(), .store_url = database.uri()});
    ASSERT_TRUE(gateway.running()) << gateway.process().output();
    const auto beside = diagnose(settings(database.uri()));
    expect(beside, "store", "ok", "settings are those it needs");
    EXPECT_FALSE(beside.of("clock")["finding"].string.empty());
    EXPECT_NE(beside.of("clock")["result"].string, "problem") << beside.output;
  }
  const char separator = database.uri().contains('?') ? '&' : '?';
  expect(diagnose(settings(database.uri() + separator + "options=-c%20synchronous_commit%3Doff")),
         "store", "problem", "synchronous_commit is off", "docs/stores.md");
  const RedisServer redis("appendfsync=everysec");
  const Gateway gateway({.upstream = provider_.address(), .store_url = redis.url()});
  ASSERT_TRUE(gateway.running());
  const auto beside = diagnose(settings(redis.url()));
  expect(beside, "store settings", "warning", "appendfsync is everysec", "docs/stores.md");
  EXPECT_EQ(beside.exit_code, 0) << beside.output;
}

// A start would refuse them, or hide records: neither is left for the start to find.
TEST_F(DoctorCommand, T47_what_the_store_contradicts_is_found_before_a_start_and_nothing_is_begun) {
  const std::string secret = file("secret");
  std::ofstream(secret) << std::string(40, 's');
  fs::permissions(secret, fs::perms::owner_read);
  const TestDatabase database;
  const RedisServer redis("");
  for (const std::string& url : {store(), database.uri(), redis.url()}) {
    SCOPED_TRACE(url);
    Gateway gateway({.upstream = provider_.address(), .store_url = url});
    ASSERT_TRUE(gateway.running());
    const auto first = send_once(gateway.address(), charge("k"));
    ASSERT_EQ(first.status, 201);
    const auto settings = [&](const std::string& rest) {
      return config("http://" + provider_.address(), "listen: 127.0.0.1:0\n" + rest, url);
    };
    const auto check = [&](const std::string& rest) {
      return run_program(built_program("idem"),
                         {"config", "check", "--ask-store", "--config", settings(rest)});
    };
    expect(diagnose(settings("key: {scope: tenant}\n")), "store", "problem",
           "key.scope is 'operation' since the first start");
    const Ran refused = check("key: {scope: tenant}\n");
    EXPECT_EQ(refused.exit_code, 2) << refused.output;
    EXPECT_NE(refused.output.find("idem.yaml:3:8: "), std::string::npos) << refused.output;
    EXPECT_NE(refused.output.find("key.scope is 'operation'"), std::string::npos) << refused.output;
    // A start with this secret begins a generation, in which the running gateway could not go on.
    const std::string newer = "key: {secret_files: [" + secret + "]}\n";
    expect(diagnose(settings(newer)), "store", "ok", "");
    EXPECT_EQ(check(newer).exit_code, 0) << check(newer).output;
    EXPECT_TRUE(replays(first, send_once(gateway.address(), charge("k"))));
    EXPECT_EQ(send_once(gateway.address(), charge("k2")).status, 201);
  }
}

}  // namespace
}  // namespace idem::test
