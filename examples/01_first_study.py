"""Run a first study of two solvers on two datasets, and write its report."""

from svmbench import run_study, write_report

if __name__ == "__main__":
    study = run_study(
        "study=first",
        "datasets=[iris,wine]",
        "solvers=[mnsvm,libsvm_l1]",
        "protocol.outer=3",
        "protocol.inner=3",
        "search.space.C=[1,16]",
        "search.space.gamma=[0.25,1]",
        "cluster=serial",
    )
    print(study.mean_scores())
    print(write_report(study))
