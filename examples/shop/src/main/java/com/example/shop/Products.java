package com.example.shop;

import java.util.List;
import org.springframework.data.jpa.repository.JpaRepository;

public interface Products extends JpaRepository<Product, Long> {

    List<Product> findTop12ByOrderByIdDesc();

    List<Product> findTop20ByDescriptionContainingIgnoreCaseOrderByPriceCents(String text);
}
