#include "transport/security.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/text.h"
#include "transport/certificates.h"

namespace fleet {
namespace {

using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

TEST(Security, AsText_ComesBack) {
  const Security back = security_from_text(to_text({new_secret(), true, "somewhere"}));
  EXPECT_THAT(back.secret, SizeIs(64));
  EXPECT_TRUE(back.tls);
  EXPECT_TRUE(security_from_text(to_text({})).open());
}

TEST(Security, OtherText_IsRefused) {
  for (const char* text : {"", "tls", "tls short", "token ", "ssl 0123456789abcdef"}) {
    EXPECT_THROW(security_from_text(text), Error) << text;
  }
}

TEST(Security, NewSecrets_Differ) { EXPECT_NE(new_secret(), new_secret()); }

TEST(Certificates, DerivedKey_IsThatOfRfc5869) {
  // Test case 1 there, the first 32 bytes of its output.
  std::string salt, info;
  for (char c = 0; c <= 0x0c; ++c) salt += c;
  for (int c = 0xf0; c <= 0xf9; ++c) info += static_cast<char>(c);
  EXPECT_EQ(hex(derive_key(std::string(22, '\x0b'), salt, info)),
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf");
}

TEST(Certificates, SecretId_TellsSecretsApartAndHidesThem) {
  const std::string secret = new_secret(), other = new_secret();
  EXPECT_EQ(secret_id(secret), secret_id(secret));
  EXPECT_NE(secret_id(secret), secret_id(other));
  EXPECT_THAT(secret_id(secret), SizeIs(8));
  EXPECT_THAT(secret, Not(HasSubstr(secret_id(secret))));
}

TEST(Certificates, Issued_HaveTheirOwnKeys) {
  const std::string secret = new_secret();
  const Certificates one = issue_certificates(secret), two = issue_certificates(secret);
  EXPECT_THAT(one.authority, StartsWith("-----BEGIN CERTIFICATE-----"));
  EXPECT_THAT(one.chain, StartsWith("-----BEGIN CERTIFICATE-----"));
  EXPECT_THAT(one.key, StartsWith("-----BEGIN PRIVATE KEY-----"));
  EXPECT_NE(one.key, two.key);
}

}  // namespace
}  // namespace fleet
