"""Visits of patients in three hospitals, and a splitter that tests on one hospital at a time."""

import numpy as np
import pandas as pd


def visits(n_patients: int = 36, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    """Return four visits of each patient as (X, y). The columns `patient` and `fold` are not features."""
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(n_patients), 4)
    ill = rng.permutation(n_patients) % 2
    center = rng.normal(size=(n_patients, 3)) + ill[:, None]
    X = pd.DataFrame(center[patient] + rng.normal(size=(len(patient), 3)), columns=["pulse", "iron", "age"])
    last_third = patient >= 2 * n_patients // 3  # the published test set
    return X.assign(patient=patient, fold=np.where(last_third, 0, -1)), pd.Series(ill[patient])


class OneHospital:
    """Splitter that tests on the patients of one hospital and trains on those of the others.

    Parameters
    ----------
    n_hospitals : int
        Number of hospitals. The hospital of a patient is half the patient's number, modulo `n_hospitals`.
    """

    def __init__(self, n_hospitals: int = 3):
        self.n_hospitals = n_hospitals

    def split(self, X, y=None, groups=None):
        """Yield the indices of the training rows and of the test rows."""
        hospital = np.asarray(groups) // 2 % self.n_hospitals
        for number in range(self.n_hospitals):
            yield np.flatnonzero(hospital != number), np.flatnonzero(hospital == number)
