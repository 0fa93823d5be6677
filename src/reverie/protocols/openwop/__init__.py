"""OpenWOP: runs, forks, workflows, workspace files, agents, commitments."""
