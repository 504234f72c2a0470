"""Rollouts: sampling a policy, and keeping what it wrote."""
