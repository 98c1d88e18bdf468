# SPDX-License-Identifier: Apache-2.0
"""Secrets of twelve kinds to plant into evidence, and what must not come out again. Put together here, so that no scanner of this
repository takes them for real ones."""

LETTERS = "AbCdEfGhIjKlMnOpQrStUvWxYz01234567"
# What stands in front, the secret, what stands behind.
KINDS = {
    "password": ("password=", "hunter2correcthorse", ""),
    "Hugging Face token": ("", "hf_" + LETTERS, ""),
    "AWS access key": ("", "AKIA" + "IOSFODNN7EXAMPLE", ""),
    "AWS secret key": ("AWS_SECRET_ACCESS_KEY=", "wJalrXUtnFEMIxK7MDENGxbPxRfiCYzzzzzKEY12", ""),
    "GitHub token": ("", "ghp_" + LETTERS + "89", ""),
    "GitLab token": ("", "glpat-" + "a1B2c3D4e5F6g7H8i9J0", ""),
    "Slack token": ("", "xoxb-" + "123456789012-abcdef1234567890", ""),
    "OpenAI key": ("", "sk-" + "proj-" + LETTERS, ""),
    "NVIDIA key": ("", "nvapi-" + LETTERS, ""),
    "JSON web token": ("", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9Pl", ""),
    "password in a URL": ("https://bot:", "passw0rdOfTheUrl", "@git.example.org/x"),
    "W&B key": ("WANDB_API_KEY=", "0123456789abcdef0123456789abcdef01234567", ""),
}


def planted(kind):
    return "".join(KINDS[kind])


def leak_of(kind, text):
    """The part of the secret that is in a text; empty where there is none. Half of one is one."""
    secret = KINDS[kind][1]
    half = secret[len(secret) // 2:]
    return secret if secret in text else half if half in text else ""
