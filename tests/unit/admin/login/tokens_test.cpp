#include "admin/login/tokens.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "support/external_data.hpp"
#include "support/temp_dir.hpp"

namespace idem::admin {
namespace {

using test::read_file;
using test::TempDir;

constexpr const char* at = "2026-11-25T12:00:00.000Z";

void write(const std::filesystem::path& path, std::string_view text, mode_t mode = 0644) {
  std::ofstream(path, std::ios::trunc) << text;
  ASSERT_EQ(::chmod(path.c_str(), mode), 0);
}
mode_t mode_of(const std::filesystem::path& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
}

TEST(Tokens, the_file_has_a_digest_and_never_the_token) {
  const TempDir dir;
  const std::string path = dir.path() / "tokens";
  const auto token = add_token(path, "grace", Role::support, at);
  ASSERT_TRUE(token) << token.error();
  EXPECT_TRUE(is_token(*token));
  const std::string content = read_file(path);
  EXPECT_EQ(content.find(*token), std::string::npos);
  EXPECT_EQ(content.find(token->substr(5)), std::string::npos);
  EXPECT_NE(content.find("grace support " + to_hex(sha256(*token)) + " " + at + "\n"),
            std::string::npos)
      << content;
  EXPECT_EQ(mode_of(path), 0644U);
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  ASSERT_TRUE(add_token(path, "ada", Role::viewer, at));
  EXPECT_EQ(mode_of(path), 0600U) << "who has closed it, keeps it closed";
  TokenFile file(path);
  const auto* const found = find_token(file.entries(), sha256(*token));
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->name, "grace");
  EXPECT_EQ(found->role, Role::support);
  EXPECT_EQ(find_token(file.entries(), sha256(*token + "0")), nullptr);
  EXPECT_EQ(find_token(file.entries(), sha256("")), nullptr);
  EXPECT_EQ(find_token(file.entries(), sha256(to_hex(sha256(*token)))), nullptr)
      << "the digest is no login";
}

TEST(Tokens, are_never_alike) {
  std::set<std::string> made;
  for (int i = 0; i < 1'000; ++i) made.insert(make_token());
  EXPECT_EQ(made.size(), 1'000U);
}

TEST(Tokens, a_name_has_one_token_until_it_is_revoked) {
  const TempDir dir;
  const std::string path = dir.path() / "tokens";
  const auto first = add_token(path, "grace", Role::operates, at);
  ASSERT_TRUE(first);
  const auto second = add_token(path, "grace", Role::viewer, at);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error(), "there is a token of this name; revoke it first, or choose another");
  ASSERT_TRUE(add_token(path, "ada", Role::viewer, at));
  TokenFile file(path);
  ASSERT_NE(find_token(file.entries(), sha256(*first)), nullptr);
  EXPECT_EQ(revoke_token(path, "grac").value_or(true), false);
  EXPECT_EQ(revoke_token(path, "grace").value_or(false), true);
  EXPECT_EQ(find_token(file.entries(), sha256(*first)), nullptr) << "at once";
  const auto rest = read_tokens(path);
  ASSERT_TRUE(rest && rest->size() == 1);
  EXPECT_EQ(rest->front().name, "ada");
  EXPECT_TRUE(read_file(path).starts_with("# ")) << "comments stay";
}

TEST(Tokens, none_is_lost_where_many_write_at_once) {
  const TempDir dir;
  const std::string path = dir.path() / "tokens";
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 8; ++writer) {
    writers.emplace_back([&, writer] {
      for (int i = 0; i < 8; ++i) {
        const std::string name = "n" + std::to_string(writer) + "-" + std::to_string(i);
        EXPECT_TRUE(add_token(path, name, Role::viewer, at));
        EXPECT_TRUE(i % 2 == 0 || revoke_token(path, name).value_or(false));
      }
    });
  }
  for (auto& writer : writers) writer.join();
  const auto all = read_tokens(path);
  ASSERT_TRUE(all) << all.error();
  EXPECT_EQ(all->size(), 32U);
}

TEST(Tokens, a_line_that_is_wrong_is_named_and_no_token_is_good) {
  const TempDir dir;
  const std::string path = dir.path() / "tokens";
  const auto token = add_token(path, "grace", Role::operates, at);
  ASSERT_TRUE(token);
  const std::string good = read_file(path);
  const std::string digest(64, 'a');
  const std::pair<std::string, std::string> lines[] = {
      {"ada operator", "the digest of the token has 64 hexadecimal digits in lower case"},
      {"ada root " + digest, "the role is viewer, support or operator"},
      {"ada operator " + digest.substr(1), "the digest of the token has 64 hexadecimal digits"},
      {"ada operator " + digest + " then more", "and nothing else"},
      {"grace viewer " + digest, "an earlier line has this name"},
      {std::string(65, 'x') + " viewer " + digest, "the name has 1 to 64 visible characters"},
      {"\xC3\xA4 viewer " + digest, "the name has 1 to 64 visible characters"},
  };
  TokenFile file(path);
  for (const auto& [line, why] : lines) {
    write(path, good + line + "\n");
    EXPECT_EQ(find_token(file.entries(), sha256(*token)), nullptr) << line;
    EXPECT_NE(file.trouble().find(path + ": line 3: "), std::string::npos) << file.trouble();
    EXPECT_NE(file.trouble().find(why), std::string::npos) << file.trouble();
    EXPECT_FALSE(add_token(path, "eve", Role::viewer, at)) << "nor is it written over";
    write(path, good);
    EXPECT_NE(find_token(file.entries(), sha256(*token)), nullptr);
    EXPECT_TRUE(file.trouble().empty());
  }
}

TEST(Tokens, a_name_that_would_be_a_comment_is_refused) {
  const TempDir dir;
  const std::string path = dir.path() / "tokens";
  for (const std::string name : {"#ada", "", "a b", "\n", "a\nb"}) {
    EXPECT_FALSE(add_token(path, name, Role::viewer, at)) << name;
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Tokens, the_file_behind_a_link_is_written) {
  const TempDir dir;
  const std::string path = dir.path() / "tokens";
  const std::string link = dir.path() / "link";
  ASSERT_TRUE(add_token(path, "grace", Role::viewer, at));
  std::filesystem::create_symlink(path, link);
  EXPECT_TRUE(revoke_token(link, "grace").value_or(false));
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_TRUE(read_tokens(path).value().empty());
}

TEST(Tokens, a_pipe_is_refused_and_not_opened) {
  const TempDir dir;
  const std::string path = dir.path() / "tokens";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const auto read = read_tokens(path);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error(), path + ": is no regular file");
}

TEST(Tokens, root_leaves_the_file_to_its_user) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  const TempDir dir;
  const std::string path = dir.path() / "tokens";
  ASSERT_TRUE(add_token(path, "grace", Role::viewer, at));
  ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
  EXPECT_FALSE(add_token(path, "ada", Role::viewer, at)) << "a process reads its own user's only";
  ASSERT_TRUE(add_token(path, "ada", Role::viewer, at, Owner::anyones_for_root));
  for (const std::string& one : {path, path + ".lock"}) {
    struct stat status{};
    ASSERT_EQ(::stat(one.c_str(), &status), 0);
    EXPECT_EQ(status.st_uid, 65534U) << one;
  }
}

TEST(Tokens, a_file_that_others_may_write_is_refused) {
  const TempDir dir;
  const std::string path = dir.path() / "tokens";
  const auto token = add_token(path, "grace", Role::operates, at);
  ASSERT_TRUE(token);
  TokenFile file(path);
  ASSERT_NE(find_token(file.entries(), sha256(*token)), nullptr);
  for (const mode_t mode : {0646, 0664, 0622}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    EXPECT_EQ(find_token(file.entries(), sha256(*token)), nullptr) << mode;
    EXPECT_NE(file.trouble().find("others may change it"), std::string::npos);
  }
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  EXPECT_NE(find_token(file.entries(), sha256(*token)), nullptr);
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  EXPECT_EQ(find_token(file.entries(), sha256(*token)), nullptr);
  EXPECT_NE(file.trouble().find("is no regular file"), std::string::npos) << file.trouble();
}

TEST(OperatorToken, is_made_once_and_for_its_user_only) {
  const TempDir dir;
  const std::string path = dir.path() / "admin-token";
  auto first = OperatorToken::open(path);
  ASSERT_TRUE(first) << first.error();
  EXPECT_EQ(mode_of(path), 0600U);
  std::string token = read_file(path);
  ASSERT_TRUE(token.ends_with('\n'));
  token.pop_back();
  EXPECT_TRUE(is_token(token));
  EXPECT_EQ(first->digest(), sha256(token));
  EXPECT_NE(first->digest(), sha256(token + "\n"));
  EXPECT_NE(first->digest(), sha256(""));
  auto second = OperatorToken::open(path);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->digest(), sha256(token)) << "the next start has the same one";
}

TEST(OperatorToken, that_is_there_needs_no_place_to_write) {
  const TempDir dir;
  const std::string path = dir.path() / "admin-token";
  ASSERT_TRUE(OperatorToken::open(path));
  const auto before = version_of(dir.path().string());
  ASSERT_TRUE(OperatorToken::open(path));
  EXPECT_EQ(version_of(dir.path().string()), before) << "nothing was made beside it";
}

TEST(OperatorToken, is_refused_where_others_may_read_it) {
  const TempDir dir;
  const std::string path = dir.path() / "admin-token";
  ASSERT_TRUE(OperatorToken::open(path));
  for (const mode_t mode : {0640, 0604, 0660}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    const auto refused = OperatorToken::open(path);
    ASSERT_FALSE(refused) << mode;
    EXPECT_EQ(refused.error(), path + ": others may read it: chmod 0600");
  }
  write(path, "letmein\n", 0600);
  const auto weak = OperatorToken::open(path);
  ASSERT_FALSE(weak);
  EXPECT_EQ(weak.error(), path + ": holds no token of the admin API; remove the file");
}

TEST(OperatorToken, who_removes_the_file_revokes_it) {
  const TempDir dir;
  const std::string path = dir.path() / "admin-token";
  auto token = OperatorToken::open(path);
  ASSERT_TRUE(token);
  std::string text = read_file(path);
  text.pop_back();
  ASSERT_EQ(token->digest(), sha256(text));
  std::filesystem::remove(path);
  EXPECT_NE(token->digest(), sha256(text));
  const std::string other = make_token();
  write(path, other + "\n", 0600);
  EXPECT_NE(token->digest(), sha256(text));
  EXPECT_EQ(token->digest(), sha256(other)) << "and another one in its place is good";
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  EXPECT_NE(token->digest(), sha256(other)) << "unless others may read it";
}

}  // namespace
}  // namespace idem::admin
