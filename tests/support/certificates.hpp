#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

struct evp_pkey_st;
struct x509_st;

namespace idem::test {

/// A certificate authority that lives as long as its object; everything it makes lies in one
/// folder.
class Authority {
 public:
  Authority(std::filesystem::path folder, const std::string& name);
  /// An intermediate one; what it issues brings its certificate along.
  Authority(std::filesystem::path folder, const std::string& name, const Authority& above);

  /// PEM, for those who trust this authority.
  const std::string& file() const { return file_; }

  struct Files {
    std::string certificate;
    std::string key;
  };
  struct Holder {
    std::string common_name;                 ///< Empty: no subject at all.
    std::vector<std::string> other_names{};  ///< "DNS:localhost", "IP:127.0.0.1", "URI:...".
    bool expired = false;
  };
  /// A fresh key and a certificate for it, at each call.
  Files issue(const Holder& holder);

 private:
  Authority(std::filesystem::path folder, const std::string& name, const Authority* above);
  std::filesystem::path folder_;
  std::string file_;
  int issued_ = 0;
  bool is_root_;
  std::shared_ptr<evp_pkey_st> key_;
  std::shared_ptr<x509_st> certificate_;
};

}  // namespace idem::test
