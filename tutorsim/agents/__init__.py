"""Agents: building the prompts that they get and reading the replies that they give. Pure."""
