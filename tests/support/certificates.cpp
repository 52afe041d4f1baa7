#include "support/certificates.hpp"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>

namespace idem::test {
namespace {

constexpr long day_seconds = 86'400;

std::shared_ptr<EVP_PKEY> make_key() { return {EVP_EC_gen("P-256"), &EVP_PKEY_free}; }

void add_extension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

std::shared_ptr<X509> make_certificate(int serial, const std::string& common_name, EVP_PKEY* key) {
  std::shared_ptr<X509> certificate(X509_new(), &X509_free);
  X509_set_version(certificate.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -2 * day_seconds);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 2 * day_seconds);
  X509_set_pubkey(certificate.get(), key);
  if (!common_name.empty()) {
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1,
                               0);
  }
  return certificate;
}

template <class Write>
std::string write_file(const std::filesystem::path& path, Write write) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  write(file);
  std::fclose(file);
  return path.string();
}

}  // namespace

Authority::Authority(std::filesystem::path folder, const std::string& name)
    : Authority(std::move(folder), name, nullptr) {}

Authority::Authority(std::filesystem::path folder, const std::string& name, const Authority& above)
    : Authority(std::move(folder), name, &above) {}

Authority::Authority(std::filesystem::path folder, const std::string& name, const Authority* above)
    : folder_(std::move(folder)),
      is_root_(above == nullptr),
      key_(make_key()),
      certificate_(make_certificate(1, name, key_.get())) {
  std::filesystem::create_directories(folder_);
  X509* own = certificate_.get();
  X509* issuer = is_root_ ? own : above->certificate_.get();
  X509_set_issuer_name(own, X509_get_subject_name(issuer));
  add_extension(own, issuer, NID_basic_constraints, "critical,CA:TRUE");
  add_extension(own, issuer, NID_key_usage, "critical,keyCertSign");
  add_extension(own, issuer, NID_subject_key_identifier, "hash");
  X509_sign(own, is_root_ ? key_.get() : above->key_.get(), EVP_sha256());
  file_ =
      write_file(folder_ / (name + ".pem"), [own](std::FILE* file) { PEM_write_X509(file, own); });
}

Authority::Files Authority::issue(const Holder& holder) {
  const auto key = make_key();
  const int serial = 100 + ++issued_;
  const auto certificate = make_certificate(serial, holder.common_name, key.get());
  X509* leaf = certificate.get();
  if (holder.expired) X509_gmtime_adj(X509_getm_notAfter(leaf), -day_seconds);
  X509_set_issuer_name(leaf, X509_get_subject_name(certificate_.get()));
  std::string names;
  for (const auto& name : holder.other_names) names += (names.empty() ? "" : ",") + name;
  if (!names.empty()) add_extension(leaf, certificate_.get(), NID_subject_alt_name, names);
  // This distinguishes two authorities of one name.
  add_extension(leaf, certificate_.get(), NID_authority_key_identifier, "keyid");
  X509_sign(leaf, key_.get(), EVP_sha256());
  const auto stem = file_ + "-issued-" + std::to_string(serial);
  return {write_file(stem + ".pem",
                     [this, leaf](std::FILE* file) {
                       PEM_write_X509(file, leaf);
                       if (!is_root_) PEM_write_X509(file, certificate_.get());
                     }),
          write_file(stem + ".key", [&key](std::FILE* file) {
            PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
          })};
}

}  // namespace idem::test
