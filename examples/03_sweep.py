"""Sweep over-relaxation, and print its effect on iterations and accuracy."""

from svmbench import run_study

if __name__ == "__main__":
    study = run_study(
        "study=eta",
        "datasets=[iris,wine]",
        "solvers=[mnsvm]",
        "sweep.eta=[1,1.3,1.6]",
        "protocol.outer=2",
        "protocol.inner=2",
        "search.space.C=[1,16]",
        "search.space.gamma=[0.25,1]",
        "cluster=serial",
    )
    print(study.outer.pivot_table(["score", "n_iter"], "solver", "dataset"))
