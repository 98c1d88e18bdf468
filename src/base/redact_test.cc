// SPDX-License-Identifier: Apache-2.0
#include "base/redact.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace tacet {
namespace {

// The planted values are put together here, so that no scanner of this repository takes them for real ones.
std::string Planted(std::string_view prefix, std::string_view rest) { return std::string(prefix) + std::string(rest); }

struct Secret {
  std::string before, secret, after;
  std::string_view kind;
};

std::vector<Secret> Secrets() {
  const std::string letters = "AbCdEfGhIjKlMnOpQrStUvWxYz01234567";
  const std::string hex40 = "0123456789abcdef0123456789abcdef01234567";
  const std::string base64 = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzKEY12";
  return {
      {"401 for token ", Planted("hf_", letters), ": not found", "Hugging Face token"},
      {"openai: ", Planted("sk-proj-", letters), "", "API key"},
      {"anthropic ", Planted("sk-ant-api03-", letters + "-x_y"), " refused", "API key"},
      {"key id ", Planted("AKIA", "IOSFODNN7EXAMPLE"), ", region us-east-1", "AWS access key"},
      {"key id ", Planted("ASIA", "IOSFODNN7EXAMPLE"), "", "AWS access key"},
      {"AWS_SECRET_ACCESS_KEY=", base64, "", "secret value"},
      {"{'SecretAccessKey': '", base64, "'}", "secret value"},
      {"maps key ", Planted("AIza", letters + "8"), "", "Google API key"},
      {"token ", Planted("ya29.", letters), "", "Google access token"},
      {"DefaultEndpointsProtocol=https;AccountName=a;AccountKey=", base64 + "==", ";EndpointSuffix=x", "secret value"},
      {"https://a.blob.core.windows.net/c?sv=2023-01-03&sig=", "aB3%2FdeFgHiJ4kLmN5oPq%3D", "&se=2024", "secret value"},
      {"remote: ", Planted("ghp_", letters + "89"), "", "GitHub token"},
      {"remote: ", Planted("github_pat_", "11ABCDEFG0" + letters), "", "GitHub token"},
      {"ci: ", Planted("glpat-", "a1B2c3D4e5F6g7H8i9J0"), "", "GitLab token"},
      {"post failed: ", Planted("xoxb-", "123456789012-abcdef1234567890"), "", "Slack token"},
      {"https://hooks.slack.com/services/", "T0000/B0000/XXXXXXXXXXXX", " answered 404", "Slack web hook"},
      {"WANDB_API_KEY=", hex40, " NCCL_DEBUG=INFO", "secret value"},
      {"wandb login ", hex40, "", "API key"},
      {"MLFLOW_TRACKING_PASSWORD=", "hunter2", "", "password"},
      {"connect(host=db, password='", "s3cr et!", "', port=5432)", "password"},
      {"password: ", "swordfish", "", "password"},
      {"{\"user\": \"v\", \"passwd\": \"", "q1", "\"}", "password"},
      {"DB_PWD=", "abc", "", "password"},
      {"train.py --hf-token ", "a8f7e6d5c4b3a2", " --lr 1e-4", "secret value"},
      {"train.py --password ", "hunter2", " --lr 1e-4", "password"},
      {"\"apiKey\": \"", "8charsok", "\"", "secret value"},
      {"\"auth_token\": \"", "9f8e7d6c5b4a", "\"", "secret value"},
      {"clone https://bot:", "hunter2", "@git.example.org/x.git", "password in a URL"},
      {"redis://:", "hunter2", "@cache:6379/0", "password in a URL"},
      {"Authorization: Bearer ", "abcdef.ghijkl", "", "authorization header"},
      {"-H 'Authorization: Basic ", "dXNlcjpwYXNz", "'", "authorization header"},
      {"got 403 with Bearer ", "a1b2c3d4e5f6a7b8c9", "", "authorization header"},
      {"jwt ", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9Pl", " expired",
       "JSON web token"},
      {"\"private_key\": \"", "-----BEGIN PRIVATE KEY-----\\nMIIEvQIBADANBg\\n-----END PRIVATE KEY-----", "\\n\"",
       "private key"},
      {"key:\n", "-----BEGIN RSA PRIVATE KEY-----\nMIIEvQIBADANBg\n-----END RSA PRIVATE KEY-----", "\nnext",
       "private key"},
      {"", "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA", "", "private key"},
      {"nvidia ", Planted("nvapi-", letters), "", "API key"},
      {"npm ", Planted("npm_", letters + "89"), "", "package registry token"},
      {"NEPTUNE_API_TOKEN: ", "eyJhcGlfYWRkcmVzcyI6Imh0dHA", "", "secret value"},
  };
}

TEST(RedactSecrets, TakesOutEveryKindAndNothingAroundIt) {
  for (const Secret& one : Secrets()) {
    const std::string text = one.before + one.secret + one.after;
    const RedactedText redacted = RedactSecrets(text);
    EXPECT_EQ(redacted.text.find(one.secret), std::string::npos) << text;
    EXPECT_EQ(redacted.text, one.before + "[redacted: " + std::string(one.kind) + "]" + one.after) << text;
    ASSERT_EQ(redacted.kinds.size(), 1u) << text;
    EXPECT_EQ(redacted.kinds[0], one.kind) << text;
  }
}

TEST(RedactSecrets, KnowsAtLeastTwelveKinds) {
  std::vector<std::string_view> kinds;
  for (const Secret& one : Secrets())
    if (std::find(kinds.begin(), kinds.end(), one.kind) == kinds.end()) kinds.push_back(one.kind);
  EXPECT_GE(kinds.size(), 12u);
}

TEST(RedactSecrets, LeavesWhatIsNoSecret) {
  for (const std::string_view text : {
           "gpu17:4121:4190 [3] NCCL INFO ncclCommInitRank comm 0x23167e90 rank 3 nranks 8 cudaDev 3 busId c8000 "
           "commId "
           "0x74c2aad0c83fa31 - Init COMPLETE",
           "commit 3f786850e387550fdab836ed7e6dc881de23001b (HEAD -> main)",
           "GPU-5f3a1c2b-7d8e-4f90-a1b2-c3d4e5f60718 at 0000:c8:00.0",
           "uuid 123e4567-e89b-12d3-a456-426614174000",
           "Peer EFA addr: fi_addr_efa://[fe80::4b2:8fff:fe7a:1f3b]:1:774121803 Peer host id: i-0fe7...",
           "Peer EFA addr: fi_addr_efa://[fe80::4b2:8f...",
           "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
           "payload aGVsbG8gd29ybGQgdGhpcyBpcyBubyBzZWNyZXQ= of 31 bytes",
           "max_tokens=4096 tokens_per_step=8388608 num_tokens: 123456789012345678",
           "eos_token='<|endoftext|>' pad_token_id=50256 tokenizer=meta-llama/Llama-3.1-8B-Instruct",
           "SyntaxError: Unexpected token: identifier",
           "store_based_barrier_key:1 (world_size=2, worker_count=1, timeout=0:30:00)",
           "key: /default_pg/0//cuda//0 color 1 key 1",
           "PWD=/home/user/project OLDPWD=/tmp",
           "password: None, passwd=, token=null, secret: ********",
           "init_method=tcp://10.0.0.1:29500 store=tcp://[fe80::1%eth0]:29500",
           "http://tacet@clickhouse:8123 and ssh://git@host/repo",
           "all_reduce took 12 ms: basic algorithm Ring, Bearer of the message",
           "sk-learn-pipelines-and-models-for-everyone task-0123456789abcdef0123",
           "hf_transformers_cache_directory_of_the_user=/data",
           "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
           "RuntimeError: [2] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value "
           "store by key '0', but store->get('0') got error: Connection reset by peer",
           "NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.0.3.4<0>",
       }) {
    const RedactedText redacted = RedactSecrets(text);
    EXPECT_EQ(redacted.text, text);
    EXPECT_TRUE(redacted.kinds.empty()) << text;
  }
}

TEST(RedactSecrets, ChangesNothingTheSecondTime) {
  for (const Secret& one : Secrets()) {
    const std::string once = RedactSecrets(one.before + one.secret + one.after).text;
    EXPECT_EQ(RedactSecrets(once).text, once);
  }
}

TEST(RedactSecrets, TakesOutSeveralSecretsOfOneLine) {
  const RedactedText redacted = RedactSecrets("DB_PASSWORD=hunter2 API_KEY=abcdefgh12 LR=0.1 url=https://u:pw@h/");
  EXPECT_EQ(
      redacted.text,
      "DB_PASSWORD=[redacted: password] API_KEY=[redacted: secret value] LR=0.1 url=https://u:[redacted: password "
      "in a URL]@h/");
  EXPECT_EQ(redacted.kinds.size(), 3u);
}

TEST(RedactSecrets, TakesOutWhatIsLeftOfASecretThatWasCut) {
  for (const auto& [text, left] :
       {std::pair{"401 for " + Planted("hf_", "AbCdEfGhI") + "...", "401 for [redacted: Hugging Face token]..."},
        std::pair{Planted("sk-", "proj-A1b2C3") + "...", "[redacted: API key]..."},
        std::pair{Planted("AKIA", "IOSFODNN7") + "...", "[redacted: AWS access key]..."},
        std::pair{std::string("clone https://bot:hunt..."), "clone https://bot:[redacted: password in a URL]..."}})
    EXPECT_EQ(RedactSecrets(text).text, left);
  for (const std::string_view text : {"hf_datasets...", "https://host:80...", "tcp://10.0.0.1:29500...", "sk-learn..."})
    EXPECT_EQ(RedactSecrets(text).text, text);
}

TEST(RedactSecrets, TakesAnyBytes) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  for (const std::string_view piece : {"=", ":", "password=", "-----BEGIN ", "://", "eyJ", "--token ", "\\\""}) {
    RedactSecrets(std::string(piece));
    RedactSecrets(all + std::string(piece) + all);
    RedactSecrets(std::string(piece) + std::string(1000, '='));
  }
}

}  // namespace
}  // namespace tacet
