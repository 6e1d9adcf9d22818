"""Judge the logs of any cluster: no history, no ledger, no workload."""
